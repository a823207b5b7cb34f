"""What operators have decreed about one currency: who began with what, budgets, joins, retirements.

Its own file because the ledger obeys it and nothing else: who is a member, and what the budget is,
never follows from anybody's view of who is alive. Reading is a function of the set of records
alone, so nodes with the same records agree. The rules:

1. The first genesis of a currency counts; later ones are ignored, with an alarm. Where the log
   forks and each branch has one, the first in the log's order counts, and no account is opened,
   until a budget makes the other branch void.
2. Where the log forks, the lowest budget of all branches holds, until a later budget names the ends
   of the branches that it settles.
3. A join that names no slot of the rack, or comes after the retirement that closes its epoch, is
   ignored, with an alarm.
4. Of several that are to stand in one slot the first in the log's order does; the others stand in
   none and may draw nothing above a floor, with an alarm. They stay members all the same: whoever
   has let them in counts them, and an epoch ends by the words of all.

It must not know signatures (they were judged before), files or peers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cluster.errors import Malformed
from cluster.identity.operator_records import Other, SignedRecord
from cluster.ids import NodeId
from cluster.rack.ledger.decrees import (
    KINDS,
    BudgetSet,
    Decree,
    Founded,
    Joined,
    Retired,
    Slot,
    decode_decree,
    dynamic_watts,
    is_below_floors,
)
from cluster.rack.units import FIRST_EPOCH, BudgetVersion, CurrencyId, Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Charter:
    """What the operators' records say about one currency."""

    founded: Founded
    version: BudgetVersion
    """The budget in force, as what can be shared out of it."""
    budget_watts: int
    """The same with margin and floors: what an operator calls the budget."""
    budgets: tuple[BudgetVersion, ...]
    """All that were ever in force by these records: somebody silent may still be on any of them."""
    joined: tuple[Joined, ...] = ()
    retired: tuple[Retired, ...] = ()
    """In the order of the log."""
    alarms: tuple[str, ...] = ()
    is_contested: bool = False
    """Whether branches of the log begin with different geneses: no account is opened."""
    placed: Mapping[str, NodeId] = field(default_factory=dict)
    """By slot: who came into it after genesis."""

    @property
    def currency(self) -> CurrencyId:
        """What it is about."""
        return self.founded.currency

    def members_of(self, epoch: Epoch) -> tuple[NodeId, ...]:
        """Who may hold shares in an epoch; nobody for one unheard of."""
        if epoch == FIRST_EPOCH:
            founders = tuple(node_id for node_id, _ in self.founded.shares)
        else:
            began = (one for one in self.retired if _follows(epoch, one))
            founders = next((one.signers for one in began), ())
        later = (one.node_id for one in self.joined if one.epoch == epoch)
        return tuple(dict.fromkeys((*founders, *later)))

    def closings_of(self, epoch: Epoch) -> tuple[Retired, ...]:
        """The records that close an epoch, the highest rank last."""
        found = [one for one in self.retired if one.epoch == epoch]
        return tuple(sorted(found, key=lambda one: one.rank))

    def closing_of_newcomer(self, node_id: NodeId) -> Retired | None:
        """The latest record that brings a node in; None for a member from elsewhere."""
        found = [one for one in self.retired if node_id in (who for who, _ in one.added)]
        return max(found, key=lambda one: (one.epoch, one.rank), default=None)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """As founded, with those who came later in their slots."""
        placed = self.placed
        return tuple(
            slot.filled_by(placed[slot.name]) if slot.name in placed else slot
            for slot in self.founded.slots
        )

    def has_slot(self, node_id: NodeId) -> bool:
        """Whether a node stands in a slot: in none, nothing pays for its floor."""
        return any(slot.node_id == node_id for slot in self.slots)


def read_charters(records: Iterable[SignedRecord]) -> Mapping[CurrencyId, Charter]:
    """The charters that standing records make, by currency; records come in the log's order."""
    standing = tuple(records)
    decreed: dict[CurrencyId, list[tuple[SignedRecord, Decree]]] = {}
    alarms: dict[CurrencyId, list[str]] = {}
    for signed in standing:
        statement = signed.record.statement
        if not isinstance(statement, Other) or statement.kind not in KINDS:
            continue
        try:
            decree = decode_decree(statement.kind, statement.body)
        except Malformed:
            continue  # nobody obeys what cannot be read; whoever signed it was told so
        decreed.setdefault(decree.currency, []).append((signed, decree))
    branches = _Branches(standing)
    charters = {}
    for currency, several in sorted(decreed.items()):
        charter = _read_charter(several, branches, alarms.setdefault(currency, []))
        if charter is not None:
            charters[currency] = charter
    return charters


def _read_charter(
    decreed: list[tuple[SignedRecord, Decree]], branches: "_Branches", alarms: list[str]
) -> Charter | None:
    genesis = [(signed, one) for signed, one in decreed if isinstance(one, Founded)]
    if not genesis:
        return None
    settles = {signed.hash: one.settles for signed, one in decreed if isinstance(one, BudgetSet)}
    standing = branches.standing(end for ends in settles.values() for end in ends)
    founders = _founders([signed.hash for signed, _ in genesis], standing, branches)
    founding, founded = next(one for one in genesis if one[0].hash == founders[0])
    for signed, _ in genesis:
        if signed.hash not in founders:
            alarms.append(f"operator record {signed.record.sequence}: a second genesis is ignored")
    if len(founders) > 1:
        alarms.append(
            "the operators' log forks, and each branch has a genesis of its own: no account is "
            "opened until `esnode power budget set` settles it; who began by another one than the "
            "first holds nothing"
        )
    budgets = _Budgets(founding, founded, decreed, branches)
    if budgets.contradiction:
        alarms.append(budgets.contradiction)
    if is_below_floors(founded, budgets.budget_watts):
        alarms.append(
            f"the budget of {budgets.budget_watts} W, less its margin, is below the floors of the "
            "slots: nothing can be shared out, and the machines may draw more than the budget"
        )
    places = _Places(founded, alarms)
    for signed, one in decreed:
        places.read(signed.record.sequence, one)
    return Charter(
        founded=founded,
        version=budgets.in_force,
        budget_watts=budgets.budget_watts,
        budgets=(*budgets.all_ever, budgets.in_force),
        joined=tuple(places.joined),
        retired=tuple(places.retired),
        alarms=tuple(alarms),
        is_contested=len(founders) > 1,
        placed=places.placed,
    )


def _founders(genesis: list[bytes], standing: list[bytes], branches: "_Branches") -> list[bytes]:
    """The first genesis of each standing branch, in the log's order; at least one."""
    firsts = dict[bytes, None]()
    for head in standing:
        chain = [hash_ for hash_ in branches.back_from(head) if hash_ in genesis]
        firsts.update(dict.fromkeys(chain[-1:]))
    return [hash_ for hash_ in genesis if hash_ in firsts] or genesis[:1]


class _Places:
    """Who stands in which slot, record by record."""

    def __init__(self, founded: Founded, alarms: list[str]) -> None:
        self._slots = {slot.name: slot for slot in founded.slots}
        self._alarms = alarms
        self._free = {slot.name: None for slot in founded.slots if slot.node_id is None}
        self.placed: dict[str, NodeId] = {}
        self.joined: list[Joined] = []
        self.retired: list[Retired] = []

    def read(self, sequence: int, decree: Decree) -> None:
        """The next record of the log."""
        match decree:
            case Joined():
                self._join(sequence, decree)
            case Retired():
                self._retire(sequence, decree)
            case _:
                pass

    def _join(self, sequence: int, one: Joined) -> None:
        where = f"operator record {sequence}"
        if one.slot not in self._slots:
            self._alarms.append(f"{where}: this rack has no slot {one.slot}")
        elif any(closing.epoch == one.epoch for closing in self.retired):
            self._alarms.append(f"{where}: a join into an epoch that was closed")
        else:
            self.joined.append(one)
            self._place(sequence, one.slot, one.node_id)

    def _retire(self, sequence: int, one: Retired) -> None:
        coming = [node_id for node_id, _ in one.added]
        replaced = [
            node_id
            for lower in self.retired
            if lower.epoch == one.epoch
            for node_id, _ in lower.added
            if node_id not in coming
        ]
        for name, slot in self._slots.items():
            if self.placed.get(name, slot.node_id) in (*one.out, *replaced):
                self._free[name] = None
        for node_id, name in one.added:
            if node_id not in one.out:
                self._place(sequence, name, node_id)
        self.retired.append(one)

    def _place(self, sequence: int, name: str, node_id: NodeId) -> None:
        slot = self._slots.get(name)
        holder = None if slot is None else self.placed.get(name, slot.node_id)
        if holder == node_id:
            self._free.pop(name, None)
        elif slot is not None and name in self._free and not slot.is_static:
            del self._free[name]
            self.placed[name] = node_id
        else:
            self._alarms.append(
                f"operator record {sequence}: slot {name} is not free: {node_id.short} stands in "
                "none and may draw nothing above a floor; retire it"
            )


class _Budgets:
    """Which budget holds: the last one of the log, and of several branches the lowest."""

    def __init__(
        self,
        founding: SignedRecord,
        founded: Founded,
        decreed: list[tuple[SignedRecord, Decree]],
        branches: "_Branches",
    ) -> None:
        self._watts = {founding.hash: founded.budget_watts}
        self._settles: dict[bytes, tuple[bytes, ...]] = {founding.hash: ()}
        for signed, one in decreed:
            if isinstance(one, BudgetSet):
                self._watts[signed.hash] = one.budget_watts
                self._settles[signed.hash] = one.settles
        self._branches = branches
        deciding = self._deciding() or [founding.hash]
        self.budget_watts = min(self._watts[hash_] for hash_ in deciding)
        self.in_force = BudgetVersion(
            sequence=max(self._sequence(hash_) for hash_ in deciding),
            watts=dynamic_watts(founded, self.budget_watts),
            is_unanimous=len(deciding) == 1,
        )
        self.all_ever = tuple(
            BudgetVersion(sequence=self._sequence(hash_), watts=dynamic_watts(founded, watts))
            for hash_, watts in self._watts.items()
        )
        self.contradiction = ""
        if len(deciding) > 1:
            names = " and ".join(str(branches.sequence_of(hash_)) for hash_ in deciding)
            self.contradiction = (
                f"the operators' log forks: of the budgets in records {names} the lowest holds; "
                "`esnode power budget set` settles it"
            )

    def _deciding(self) -> list[bytes]:
        """The last budget of each branch that no later budget made void."""
        void = {end for ends in self._settles.values() for end in ends}
        last = (
            next((one for one in self._branches.back_from(head) if one in self._watts), None)
            for head in self._branches.standing(void)
        )
        return list(dict.fromkeys(one for one in last if one is not None))

    def _sequence(self, hash_: bytes) -> int:
        """Higher than that of every branch that it made void."""
        ends = (self._branches.sequence_of(end) + 1 for end in self._settles[hash_])
        return max(self._branches.sequence_of(hash_), *ends, 0)


def _follows(epoch: Epoch, closing: Retired) -> bool:
    return (closing.epoch.number + 1, closing.rank) == epoch


class _Branches:
    """The shape of the log: which record follows which."""

    def __init__(self, records: tuple[SignedRecord, ...]) -> None:
        self._by_hash = {signed.hash: signed for signed in records}
        followed = {signed.record.previous for signed in records}
        self.heads = [hash_ for hash_ in self._by_hash if hash_ not in followed]

    def standing(self, void: Iterable[bytes]) -> list[bytes]:
        """The ends of the branches that nobody made void; all, where that would be none."""
        ends = dict.fromkeys(void)
        return [head for head in self.heads if head not in ends] or self.heads

    def back_from(self, head: bytes) -> Iterable[bytes]:
        """A record and those before it, the newest first."""
        at = self._by_hash.get(head)
        while at is not None:
            yield at.hash
            at = self._by_hash.get(at.record.previous)

    def sequence_of(self, hash_: bytes) -> int:
        """Where in the log; 0 for a record that has not arrived."""
        signed = self._by_hash.get(hash_)
        return 0 if signed is None else signed.record.sequence
