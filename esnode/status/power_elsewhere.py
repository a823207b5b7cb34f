"""The power of a rack in which this agent is not: what operators decreed, and what its nodes told.

Its own file because here everything is at second hand: there is no ledger of ours, and a rack of
which nobody answered is not unprotected but unknown. Pure. It must not know who asked, nor how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.ids import NodeId, RackId
from cluster.rack.ledger.charter import Charter
from cluster.rack.model import NodeState
from cluster.rack.units import CurrencyId
from esnode.status.gpu import Document
from esnode.status.power import MateFact, PowerKnown, RowFact
from esnode.status.power_rack import describe_currency

SCHEMA = "esnode.power_rack/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldNode:
    """One node of that rack."""

    name: str
    state: NodeState = field(repr=False)
    age_seconds: float
    """Since it told that."""


def describe_power_elsewhere(
    rack: RackId,
    charters: Mapping[CurrencyId, Charter],
    nodes: Mapping[NodeId, ToldNode],
) -> Document:
    """The constraints of a rack; none are described while no node of it has told anything."""
    currency = CurrencyId(f"rack:{rack}")
    known = PowerKnown(
        state="",
        detail="",
        rack=rack,
        charters={currency: charters[currency]} if currency in charters else {},
        rows={
            (one, row.node_id): RowFact(row=row, age_seconds=node.age_seconds)
            for node_id, node in nodes.items()
            for one, row in node.state.power_rows
            if row.node_id == node_id
        },
        mates={
            node_id: MateFact(
                name=node.name,
                draw_watts=node.state.power_draw_watts,
                is_draw_estimated=node.state.is_power_draw_estimated,
                cap_watts=node.state.power_cap_watts,
                age_seconds=node.age_seconds,
            )
            for node_id, node in nodes.items()
        },
    )
    return {
        "schema": SCHEMA,
        "rack": rack,
        "is_answered": bool(nodes),
        "is_governed": currency in charters,
        "currencies": [describe_currency(known, currency)]
        if nodes and currency in charters
        else [],
    }
