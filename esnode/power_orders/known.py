"""What an agent knows of machines and slots, out of the documents that it serves.

Its own file because orders are judged by it, and a document of another version may lack anything:
what is not there is None, and whoever needs it says so. It must not know how documents are fetched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.units import CurrencyId, Epoch

Document = Mapping[str, Any]
HERE = ("alive", "degraded", "suspect")
"""States of members that have been heard lately."""
RETURNING = (*HERE, "failed")
"""States of members that belong to the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node of the cluster, as the agent that was asked knows it."""

    node_id: NodeId
    name: str
    rack: str
    state: str
    heard_seconds: float | None = None
    is_asked: bool = False
    draw_watts: float | None = None
    is_draw_estimated: bool = False
    gpu_draw_watts: float | None = None
    gpu_limit_watts: float | None = None
    """What the limits of its GPUs could be raised to."""
    gpu_count: int | None = None
    lowest_watts: float | None = None
    """What its own agent says that it can be held to."""
    highest_watts: float | None = None
    """What its own agent says that it can draw at most."""

    @property
    def is_heard(self) -> bool:
        """Whether it says something."""
        return self.state in HERE


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotKnown:
    """One slot of the power document."""

    slot: str
    node_id: NodeId | None
    state: str
    floor_watts: int | None = None
    share_watts: int | None = None
    cap_watts: int | None = None
    minimum_watts: int | None = None
    """The lowest cap under which its work can run; with the floor."""
    priority: int | None = None
    version: int | None = None
    epoch: Epoch | None = None
    age_seconds: float | None = None
    is_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyKnown:
    """One currency of the power document."""

    currency: CurrencyId
    epoch: Epoch | None
    version: int | None
    slots: tuple[SlotKnown, ...]
    absent: tuple[str, ...] = ()
    """Whose last word an open retirement waits for."""

    def slot_of(self, node_id: NodeId) -> SlotKnown | None:
        """Where a node stands."""
        return next((one for one in self.slots if one.node_id == node_id), None)


def read_machines(cluster: Document) -> tuple[Machine, ...]:
    """The nodes of a cluster document.

    Raises:
        KeyError, TypeError, AttributeError, Malformed: it is of another version.
    """
    return tuple(
        Machine(
            node_id=NodeId.parse(str(one["id"])),
            name=str(one["name"]),
            rack=str(one["rack"]),
            state=str(one["state"]),
            heard_seconds=number_of(one, "last_heard_seconds"),
            is_asked=one.get("is_asked") is True,
            draw_watts=number_of(one, "power", "draw_watts", "value"),
            is_draw_estimated=find(one, "power", "draw_watts", "estimated") is True,
            gpu_draw_watts=number_of(one, "gpus", "draw_watts", "value"),
            gpu_limit_watts=number_of(one, "gpus", "limit_watts", "value"),
            gpu_count=whole_of(one, "gpus", "total"),
            lowest_watts=number_of(one, "power", "lowest_watts", "value"),
            highest_watts=number_of(one, "power", "highest_watts", "value"),
        )
        for one in cluster["nodes"]
    )


def read_currencies(power: Document) -> tuple[CurrencyKnown, ...]:
    """The currencies of a power document.

    Raises:
        KeyError, TypeError, AttributeError: it is of another version.
    """
    return tuple(
        CurrencyKnown(
            currency=CurrencyId(str(one["currency"])),
            epoch=_epoch(one.get("epoch")),
            version=whole_of(one, "version"),
            slots=tuple(_slot(slot) for slot in one["slots"]),
            absent=tuple(str(name) for name in find(one, "closing", "absent") or ()),
        )
        for one in power["currencies"]
    )


def currency_of(known: Sequence[CurrencyKnown], currency: CurrencyId) -> CurrencyKnown | None:
    """The one of this name."""
    return next((one for one in known if one.currency == currency), None)


def is_outside(power: Document) -> bool:
    """Whether the asked node is held down for standing in no slot of its rack's budget."""
    return power["state"] == "parked" and not any(
        slot.get("node") == power["node"] for one in power["currencies"] for slot in one["slots"]
    )


def _slot(one: Document) -> SlotKnown:
    return SlotKnown(
        slot=str(one["slot"]),
        node_id=_node_id(one.get("node_id")),
        state=str(one["state"]),
        floor_watts=whole_of(one, "floor_watts"),
        share_watts=whole_of(one, "share_watts"),
        cap_watts=whole_of(one, "cap_watts"),
        minimum_watts=whole_of(one, "minimum_watts"),
        priority=whole_of(one, "priority"),
        version=whole_of(one, "version"),
        epoch=_epoch(one.get("epoch")),
        age_seconds=number_of(one, "age_seconds"),
        is_behind=one.get("is_behind") is True,
    )


def find(document: object, *path: str) -> Any:
    """A value deep in a document; None where it is not."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def number_of(document: object, *path: str) -> float | None:
    """A number deep in a document; None where there is none."""
    value = find(document, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def whole_of(document: object, *path: str) -> int | None:
    """A whole number deep in a document; None where there is none."""
    value = find(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _epoch(value: object) -> Epoch | None:
    match value:
        case [int() as number, int() as rank]:
            return Epoch(number, rank)
        case _:
            return None


def _node_id(value: object) -> NodeId | None:
    try:
        return NodeId.parse(value) if isinstance(value, str) else None
    except Malformed:
        return None
