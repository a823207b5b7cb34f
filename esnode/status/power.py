"""The document of rack power: this node's cap, and its rack as this node knows it.

Pure, from frozen values. Its own file because commands and dashboards read it. All watts are those
of whole machines at their inlets, in whole numbers; what is not known is null, never 0. It must not
know how anything was heard.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from cluster.ids import NodeId
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.ledger import LedgerView
from cluster.rack.power_effects import PowerView
from cluster.rack.rows import Row
from cluster.rack.units import CurrencyId
from esnode.control.settling import SettleSeen
from esnode.readings.limits import LimitRange
from esnode.status.gpu import Document

SCHEMA = "esnode.power/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFact:
    """One device that takes a limit, or is known to take none from us."""

    range: LimitRange
    limit_watts: int | None
    draw_watts: float | None
    set_by: str
    is_given_up: bool
    is_refusing: bool = False
    """It takes no raise."""
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MateFact:
    """What a node told of itself, this node too."""

    name: str
    draw_watts: float | None
    is_draw_estimated: bool
    cap_watts: float | None
    age_seconds: float | None
    """Since it told; None where it never did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFact:
    """A member's account."""

    row: Row
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerKnown:
    """All that one node knows of rack power at one instant."""

    state: str
    """``ungoverned``, ``starting``, ``enforcing``, ``parked``, ``quarantined``, ``static``,
    ``observing`` or ``unavailable``."""
    detail: str
    node: str = ""
    rack: str = ""
    node_id: NodeId | None = None
    is_gate_open: bool = False
    gate_reason: str = ""
    floor_watts: int | None = None
    """Of this node's slot."""
    lowest_watts: int | None = None
    """What the machine can be held to."""
    highest_watts: int | None = None
    """What it can draw at most."""
    settle_seconds: float = 0.0
    """As configured."""
    settle_seen: SettleSeen | None = None
    """What lowerings on this machine have shown of it."""
    draw_watts: float | None = None
    draw_source: str = ""
    view: PowerView | None = field(repr=False, default=None)
    devices: tuple[DeviceFact, ...] = ()
    charters: Mapping[CurrencyId, Charter] = field(repr=False, default_factory=dict)
    rows: Mapping[tuple[CurrencyId, NodeId], RowFact] = field(repr=False, default_factory=dict)
    mates: Mapping[NodeId, MateFact] = field(repr=False, default_factory=dict)
    alarms: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(repr=False, default_factory=dict)
    """Of entries kept by their kind, of messages, caps, refusals."""
    has_disk_trouble: bool = False

    def ledger(self, currency: CurrencyId) -> LedgerView | None:
        """The account of this node in one currency."""
        views = () if self.view is None else self.view.ledgers
        return next((one for one in views if one.currency == currency), None)

    def cap_watts(self, dynamic_watts: int | None) -> int | None:
        """Of the whole machine, from what is above its floor."""
        if dynamic_watts is None or self.floor_watts is None:
            return None
        return self.floor_watts + dynamic_watts


def describe_cap(known: PowerKnown) -> Document:
    """The cap of this node."""
    view = known.view
    actuator = None if view is None else view.actuator
    demand = None if view is None else view.wants.demand_watts
    return {
        "floor_watts": known.floor_watts,
        "lowest_watts": known.lowest_watts,
        "highest_watts": known.highest_watts,
        "wanted_watts": None if actuator is None else known.cap_watts(actuator.wanted_watts),
        "in_force_watts": None if actuator is None else known.cap_watts(actuator.in_force_watts),
        "bound_watts": None if actuator is None else known.cap_watts(actuator.bound_watts),
        "draw_watts": whole(known.draw_watts),
        "draw_source": known.draw_source or None,
        "demand_watts": known.cap_watts(demand),
        "reason": "" if view is None else view.reason,
        "cover_watts": 0 if view is None else view.cover_watts,
        "throttle_watts": 0 if view is None else view.throttle_watts,
        "settle_seconds": known.settle_seconds,
        "settle_seen": describe_settle(known.settle_seen),
        "is_settled": actuator is not None and actuator.is_settled,
        "is_refusing": actuator is not None and actuator.is_refusing,
    }


def describe_settle(seen: SettleSeen | None) -> Document | None:
    """How long draws took to fall after lowerings; None before any showed it."""
    if seen is None:
        return None
    return {
        "at_least_seconds": round(seen.at_least_seconds, 2),
        "at_most_seconds": round(seen.at_most_seconds, 2),
        "lowerings_count": seen.lowerings_count,
    }


def settle_alarm(known: PowerKnown) -> str:
    """That the configured settle time is too short for what was seen; empty where it is not."""
    seen = known.settle_seen
    if seen is None or seen.at_least_seconds <= known.settle_seconds:
        return ""
    return (
        f"power_settle is {known.settle_seconds:g} s, and draws took {seen.at_least_seconds:.1f} s "
        f"and more to fall after a lowering (99th of 100, by {seen.lowerings_count} seen): "
        f"set it to {ceil(seen.at_most_seconds)}s"
    )


def describe_devices(known: PowerKnown) -> list[Document]:
    """The devices of this machine."""
    counts: dict[str, int] = {}
    described: list[Document] = []
    for fact in known.devices:
        kind = fact.range.kind
        index = counts[kind] = counts.get(kind, -1) + 1
        described.append(
            {
                "device": fact.range.device,
                "kind": kind,
                "index": index,
                "minimum_watts": fact.range.minimum_watts,
                "maximum_watts": fact.range.maximum_watts,
                "limit_watts": fact.limit_watts,
                "draw_watts": whole(fact.draw_watts),
                "set_by": fact.set_by,
                "is_given_up": fact.is_given_up,
                "is_refusing": fact.is_refusing,
                "refusal": fact.refusal,
            }
        )
    return described


def whole(watts: float | None) -> int | None:
    """Whole watts; unknown stays unknown."""
    return None if watts is None else round(watts)
