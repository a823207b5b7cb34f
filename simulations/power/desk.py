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
FEED = CurrencyId("feed-b:r00")
"""The second of two feeds, where a rack has budgets for both; the first is the rack's."""
FLOOR_WATTS = 2000
"""Idle, boot and lowest limits of one machine; charged for every slot, never traded."""


class Desk:
    """One log of decrees; a node that has heard the first N of them obeys `charters(N)`."""

    def __init__(
        self,
        budget_watts: int,
        slots: Mapping[str, NodeId | None],
        *,
        static_watts: int = 0,
        feed_watts: int | None = None,
    ) -> None:
        """Found the rack, and its second feed where that has a budget.

        `static_watts` is what a machine that nobody caps is counted at.
        """
        self.records: list[SignedRecord] = []
        self._charters: dict[tuple[int, int | None], Mapping[CurrencyId, Charter]] = {}
        self.slots = dict(slots)
        holders = [node_id for node_id in slots.values() if node_id is not None]
        each, rest = divmod(SHARES_TOTAL, len(holders))
        static = Slot(name="static", floor_watts=static_watts, is_static=True)
        self.floors_watts = FLOOR_WATTS * len(slots) + static_watts
        budgets = {CURRENCY: budget_watts}
        if feed_watts is not None:
            budgets[FEED] = feed_watts
        for currency, watts in budgets.items():
            founded = Founded(
                currency=currency,
                budget_watts=watts,
                margin_ppm=0,
                slots=(
                    *(
                        Slot(name=name, floor_watts=FLOOR_WATTS, node_id=node_id)
                        for name, node_id in slots.items()
                    ),
                    *((static,) if static_watts else ()),
                ),
                shares=tuple(
                    (one, each + (1 if at < rest else 0)) for at, one in enumerate(holders)
                ),
            )
            self._sign(founded)

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.records)

    @property
    def charter(self) -> Charter:
        """By all records."""
        return self.charter_of(CURRENCY)

    def charter_of(self, currency: CurrencyId) -> Charter:
        """Of one of the feeds, by all records."""
        return self.charters(self.count)[currency]

    def charters(self, count: int, without: int | None = None) -> Mapping[CurrencyId, Charter]:
        """What the first so many records say; `without` is the place of one that did not come."""
        key = (count, without)
        if key not in self._charters:
            heard = [one for at, one in enumerate(self.records[:count]) if at != without]
            self._charters[key] = read_charters(heard)
        return self._charters[key]

    def set_budget(self, budget_watts: int, currency: CurrencyId = CURRENCY) -> None:
        """Sign another budget."""
        self._sign(BudgetSet(currency=currency, budget_watts=budget_watts))

    def set_two_budgets(self, first_watts: int, second_watts: int) -> None:
        """Two operators sign at once: the log forks behind the record before."""
        self.set_budget(first_watts)
        self._sign(BudgetSet(currency=CURRENCY, budget_watts=second_watts), behind=-2)

    def settle(self, budget_watts: int) -> None:
        """One of them, who has heard both, signs a budget that makes both branches void."""
        ends = tuple(one.hash for one in self.records[-2:])
        self._sign(BudgetSet(currency=CURRENCY, budget_watts=budget_watts, settles=ends))

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

    def _sign(self, decree: Decree, *, behind: int = -1) -> None:
        kind, body = encode_decree(decree)
        before = self.records[behind].record.sequence if self.records else 0
        record = OperatorRecord(
            cluster_id=CLUSTER,
            sequence=before + 1,
            previous=self.records[behind].hash if self.records else log_root(CLUSTER),
            statement=Other(kind=kind, body=body),
            signed_by=_OPERATOR,
            written_unix_seconds=0,
        )
        payload = b"decree %d " % len(self.records) + body
        self.records.append(SignedRecord(record=record, payload=payload, signature=bytes(64)))
