"""What this node has heard of its rack's power: operators' charters, members' accounts and states.

Its own file because it is known whether or not this node trades: a node that counts as static
shows its rack all the same. It must not know the ledger.
"""

from collections.abc import Iterable, Mapping

from cluster.gossip.view import MemberView
from cluster.host import Host
from cluster.ids import NodeId
from cluster.rack.ledger.charter import Charter, read_charters
from cluster.rack.model import NodeState
from cluster.rack.rows import Row
from cluster.rack.units import CurrencyId
from esnode.cluster_reports import state_of
from esnode.powering.alone import Alone
from esnode.status.power import MateFact, RowFact

Rows = list[tuple[CurrencyId, Row]]


class Heard:
    """Everything that came, the newest of each."""

    def __init__(self) -> None:
        self.charters: Mapping[CurrencyId, Charter] = {}
        """Those that this node has a part in, and that of its rack."""
        self._rows: dict[tuple[CurrencyId, NodeId], tuple[Row, float]] = {}
        self._mates: dict[NodeId, tuple[str, NodeState, float]] = {}
        self._states: dict[NodeId, bytes] = {}
        """As they came: what has not changed is not read again."""

    def read_charters(self, host: Host | Alone, rack_currency: CurrencyId) -> None:
        """Read the operators' log anew."""
        own = host.keys.identity.node_id
        charters = read_charters(host.peer.roster.log.records)
        self.charters = {
            currency: charter
            for currency, charter in charters.items()
            if currency == rack_currency or own in nodes_of(charter)
        }

    def hear_states(self, host: Host, now: float) -> Rows:
        """Take in what rack mates have told; the rows that are new."""
        rack = host.keys.identity.rack
        new: Rows = []
        for member in host.view().gossip.members:
            if member.rack != rack or member.state == self._states.get(member.node_id):
                continue
            state = state_of(member)
            if state is None:
                continue
            assert member.state is not None
            self._states[member.node_id] = member.state
            self._mates[member.node_id] = (member.name, state, _told_seconds(member, now))
            for currency, row in state.power_rows:
                if row.node_id == member.node_id:
                    self.hear_row(currency, row, now)
                    new.append((currency, row))
        return new

    def hear_row(self, currency: CurrencyId, row: Row, now: float) -> bool:
        """Keep a row that its node signed, if it is newer; whether it was kept."""
        if currency not in self.charters:
            return False
        known = self._rows.get((currency, row.node_id))
        if known is not None and known[0].stamp >= row.stamp:
            return False
        self._rows[(currency, row.node_id)] = (row, now)
        return True

    def hear_own(self, name: str, own: NodeId, state: NodeState, now: float) -> None:
        """What this node itself tells."""
        self._mates[own] = (name, state, now)
        for currency, row in state.power_rows:
            self._rows[(currency, own)] = (row, now)

    def rows(self, now: float) -> Mapping[tuple[CurrencyId, NodeId], RowFact]:
        """Members' accounts."""
        return {
            key: RowFact(row=row, age_seconds=max(0.0, now - at))
            for key, (row, at) in self._rows.items()
        }

    def mates(self, now: float) -> Mapping[NodeId, MateFact]:
        """What members told of themselves."""
        return {
            node_id: MateFact(
                name=name,
                draw_watts=state.power_draw_watts,
                is_draw_estimated=state.is_power_draw_estimated,
                cap_watts=state.power_cap_watts,
                age_seconds=max(0.0, now - at),
            )
            for node_id, (name, state, at) in self._mates.items()
        }

    def forget(self) -> None:
        """Another cluster, or none."""
        self.charters = {}
        self._rows.clear()
        self._mates.clear()
        self._states.clear()


def nodes_of(charter: Charter) -> tuple[NodeId, ...]:
    """Everybody who holds, held or may come to hold shares of it, or stands in one of its slots."""
    return (
        *(node_id for node_id, _ in charter.founded.shares),
        *(one.node_id for one in charter.joined),
        *(node_id for record in charter.retired for node_id, _ in record.added),
        *(slot.node_id for slot in charter.slots if slot.node_id is not None),
    )


def floor_of(charters: Iterable[Charter], own: NodeId) -> int | None:
    """What is charged for this node's slot; the lowest of several constraints, to be safe."""
    floors = [
        slot.floor_watts for charter in charters for slot in charter.slots if slot.node_id == own
    ]
    return min(floors, default=None)


def _told_seconds(member: MemberView, now: float) -> float:
    return now - (member.state_age_seconds or 0.0)
