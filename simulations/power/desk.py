"""The operator's desk of one rack: genesis, budgets, joins and retirements, as signed records.

Its own file because all nodes obey the same log, each as much of it as it has heard. Who signed is
not what these simulations ask, so the signature is a stand-in. It must not know machines.
"""

from collections.abc import Mapping

from cluster.identity.operator_records import (
    OperatorRecord,
    Other,
    SignedRecord,
    log_root,
)
from cluster.ids import ClusterId, NodeId, OperatorId
from cluster.rack.ledger.charter import Charter, read_charters
from cluster.rack.ledger.decrees import (
    BudgetSet,
    Decree,
    Founded,
    Joined,
    Retired,
    Slot,
    encode_decree,
)
from cluster.rack.units import SHARES_TOTAL, CurrencyId, Epoch

CLUSTER = ClusterId(bytes(16))
_OPERATOR = OperatorId(b"o" * 16)
CURRENCY = CurrencyId("rack:r00")
FLOOR_WATTS = 2000
"""Idle, boot and lowest limits of one machine; charged for every slot, never traded."""


class Desk:
    """One log of decrees; a node that has heard the first N of them obeys `charters(N)`."""

    def __init__(self, budget_watts: int, slots: Mapping[str, NodeId | None]) -> None:
        self.records: list[SignedRecord] = []
        self._charters: dict[int, Mapping[CurrencyId, Charter]] = {0: {}}
        self.slots = dict(slots)
        holders = [node_id for node_id in slots.values() if node_id is not None]
        each, rest = divmod(SHARES_TOTAL, len(holders))
        self._sign(
            Founded(
                currency=CURRENCY,
                budget_watts=budget_watts,
                margin_ppm=0,
                slots=tuple(
                    Slot(name=name, floor_watts=FLOOR_WATTS, node_id=node_id)
                    for name, node_id in slots.items()
                ),
                shares=tuple(
                    (one, each + (1 if at < rest else 0)) for at, one in enumerate(holders)
                ),
            )
        )

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.records)

    @property
    def charter(self) -> Charter:
        """By all records."""
        return self.charters(self.count)[CURRENCY]

    def charters(self, count: int) -> Mapping[CurrencyId, Charter]:
        """What the first so many records say."""
        if count not in self._charters:
            self._charters[count] = read_charters(self.records[:count])
        return self._charters[count]

    def set_budget(self, budget_watts: int) -> None:
        """Sign another budget."""
        self._sign(BudgetSet(currency=CURRENCY, budget_watts=budget_watts))

    def join(self, node_id: NodeId, slot: str, epoch: Epoch) -> None:
        """Let one more identity in."""
        self._sign(Joined(currency=CURRENCY, node_id=node_id, slot=slot, epoch=epoch))

    def retire(self, epoch: Epoch, gone: NodeId, newcomer: tuple[NodeId, str] | None) -> Retired:
        """Sign that a machine is off; where a record is open, the next rank that contains it."""
        open_records = self.charter.closings_of(epoch)
        added = () if newcomer is None else (newcomer,)
        if open_records:
            last = open_records[-1]
            record = Retired(
                currency=CURRENCY,
                epoch=epoch,
                rank=last.rank + 1,
                members=last.members,
                out=tuple(one for one in (*last.out, gone) if one in last.members),
                added=(*(one for one in last.added if one[0] != gone), *added),
                evidence="powered off",
            )
        else:
            record = Retired(
                currency=CURRENCY,
                epoch=epoch,
                rank=0,
                members=self.charter.members_of(epoch),
                out=(gone,),
                added=added,
                evidence="powered off",
            )
        self._sign(record)
        return record

    def _sign(self, decree: Decree) -> None:
        kind, body = encode_decree(decree)
        record = OperatorRecord(
            cluster_id=CLUSTER,
            sequence=len(self.records) + 1,
            previous=self.records[-1].hash if self.records else log_root(CLUSTER),
            statement=Other(kind=kind, body=body),
            signed_by=_OPERATOR,
            written_unix_seconds=0,
        )
        payload = b"decree %d " % len(self.records) + body
        self.records.append(SignedRecord(record=record, payload=payload, signature=bytes(64)))
