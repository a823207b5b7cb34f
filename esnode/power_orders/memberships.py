"""A node comes into a rack's ledger, or goes: joins and retirements, and why they are refused.

Its own file because a retirement gives a dead node's watts to the others: signed for a machine that
still draws them, it breaks the promise. So what contradicts the operator's word is looked for here,
and told. It must not know how the machines are heard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.activation import SILENT_SECONDS
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.decrees import TEXT_CHARACTERS_MAX, Joined, Retired, check_decree
from cluster.rack.units import Epoch
from esnode.power_orders.known import CurrencyKnown, Machine
from esnode.power_orders.machines import check_rack
from esnode.power_orders.refusals import CannotOrder, check_none

FRESH_SECONDS = 10.0
"""Rows come each second; an older one says nothing of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A machine that is to come into a slot."""

    machine: Machine
    slot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirePlan:
    """A retirement, and what it will do."""

    decree: Retired
    gone: tuple[str, ...]
    """All that go by this record, by name."""
    signers: tuple[str, ...]
    """Whose last word it takes."""
    absent: tuple[str, ...]
    """Those of them that were not heard lately, and since when."""
    notes: tuple[str, ...]


def plan_join(
    charter: Charter, newcomer: Newcomer, *, known: CurrencyKnown, machines: Sequence[Machine]
) -> Joined:
    """The record that lets one more node in.

    Raises:
        CannotOrder: it would be ignored, or takes a place that somebody has.
    """
    epoch = _epoch_of(charter, known)
    check_none(_newcomer_problems(charter, newcomer, epoch, machines, leaving=()))
    if charter.closings_of(epoch):
        absent = ", ".join(known.absent) or "nobody that is known here"
        raise CannotOrder(
            f"a retirement is under way in {charter.currency} (it waits for {absent}): join when "
            "it is through, or bring the node in with `esnode power retire ... --replace-with`"
        )
    return Joined(
        currency=charter.currency,
        node_id=newcomer.machine.node_id,
        slot=newcomer.slot,
        epoch=epoch,
    )


def plan_retire(
    charter: Charter,
    machine: Machine,
    *,
    evidence: str,
    newcomer: Newcomer | None,
    known: CurrencyKnown,
    machines: Sequence[Machine],
    is_insisting: bool,
) -> RetirePlan:
    """The record that ends an epoch; one of the next rank where a retirement is open.

    Raises:
        CannotOrder: the machine is alive, or somebody whose word it takes is not there.
    """
    epoch = _epoch_of(charter, known)
    _check_can_go(charter, machine, epoch)
    if len(evidence) > TEXT_CHARACTERS_MAX or not evidence.isprintable():
        raise CannotOrder(
            f"--evidence is one line of at most {TEXT_CHARACTERS_MAX} characters", is_usage=True
        )
    if newcomer is not None:
        problems = _newcomer_problems(
            charter, newcomer, epoch, machines, leaving=(machine.node_id,)
        )
        check_none(problems)
    decree = _next_retirement(charter, epoch, machine.node_id, newcomer, evidence)
    names = {one.node_id: one.name for one in machines}
    absent = _absent(decree, known, machines)
    if absent and not is_insisting:
        raise CannotOrder(
            f"a retirement needs the last word of each node that stays, and these were not heard "
            f"within {SILENT_SECONDS:.0f} s: {', '.join(absent)}; trading stands still until they "
            "are back (or retired too); --insist signs it all the same"
        )
    before = charter.closings_of(epoch)
    return RetirePlan(
        decree=decree,
        gone=tuple(names.get(one, one.short) for one in decree.out),
        signers=tuple(names.get(one, one.short) for one in decree.signers),
        absent=absent,
        notes=tuple(
            [f"takes the place of the retirement of rank {before[-1].rank}, which is not through"]
            if before
            else []
        ),
    )


def is_member(charter: Charter, node_id: NodeId, known: CurrencyKnown | None) -> bool:
    """Whether a node holds shares in the present epoch, as far as that is known here."""
    epoch = known.epoch if known is not None else None
    return epoch is not None and node_id in charter.members_of(epoch)


def _epoch_of(charter: Charter, known: CurrencyKnown) -> Epoch:
    """The present epoch, where nobody says otherwise."""
    if known.epoch is None:
        raise CannotOrder(
            f"the agent here is no member of {charter.currency} and does not know its epoch: give "
            "the order at a member"
        )
    members = charter.members_of(known.epoch)
    others = {
        one.slot: one.epoch
        for one in known.slots
        if one.epoch is not None
        and one.epoch != known.epoch
        and one.node_id in members
        and one.age_seconds is not None
        and one.age_seconds <= FRESH_SECONDS  # who is silent may have stayed behind
    }
    later = [record for record in charter.retired if record.epoch > known.epoch]
    if others:
        told = ", ".join(f"{slot} is in {_epoch_text(one)}" for slot, one in others.items())
        raise CannotOrder(
            f"epochs differ: the agent here is in {_epoch_text(known.epoch)}, and {told}; an epoch "
            "is just ending, try again in some seconds"
        )
    if later:
        raise CannotOrder(
            f"epochs differ: the agent here is in {_epoch_text(known.epoch)}, and operators have "
            f"ended {_epoch_text(later[-1].epoch)} already; ask another member"
        )
    return known.epoch


def _epoch_text(epoch: Epoch) -> str:
    return f"epoch {epoch.number}.{epoch.rank}"


def _check_can_go(charter: Charter, machine: Machine, epoch: Epoch) -> None:
    node_id = machine.node_id
    newcomers = {one for record in charter.closings_of(epoch) for one, _ in record.added}
    if any(node_id in record.out for record in charter.retired):
        raise CannotOrder(f"{machine.name} ({node_id.short}) was retired already")
    if node_id not in charter.members_of(epoch) and node_id not in newcomers:
        raise CannotOrder(f"{machine.name} is no member of {charter.currency}", is_usage=True)
    if machine.is_heard:
        heard = machine.heard_seconds
        ago = "" if heard is None or machine.is_asked else f", heard {heard:.0f} s ago"
        raise CannotOrder(
            f"{machine.name} is {machine.state}{ago}: it may still draw power, and its watts "
            "cannot be given away; switch the machine off first"
        )


def _next_retirement(
    charter: Charter, epoch: Epoch, gone: NodeId, newcomer: Newcomer | None, evidence: str
) -> Retired:
    """All that the record before it says as well: a superset may replace it."""
    added = () if newcomer is None else ((newcomer.machine.node_id, newcomer.slot),)
    before = charter.closings_of(epoch)
    last = before[-1] if before else None
    members = charter.members_of(epoch) if last is None else last.members
    out = (gone,) if last is None else (*last.out, gone)
    kept = () if last is None else tuple(one for one in last.added if one[0] != gone)
    decree = Retired(
        currency=charter.currency,
        epoch=epoch,
        rank=0 if last is None else last.rank + 1,
        members=members,
        out=tuple(one for one in dict.fromkeys(out) if one in members),
        added=(*kept, *added),
        evidence=evidence,
    )
    try:
        check_decree(decree)
    except Malformed as error:
        raise CannotOrder(str(error)) from None
    return decree


def _absent(decree: Retired, known: CurrencyKnown, machines: Sequence[Machine]) -> tuple[str, ...]:
    by_id = {one.node_id: one for one in machines}
    absent = []
    for node_id in decree.signers:
        machine = by_id.get(node_id)
        slot = known.slot_of(node_id)
        if machine is not None and machine.is_asked:
            continue
        name = node_id.short if machine is None else machine.name
        ages = [
            None if machine is None else machine.heard_seconds,
            None if slot is None else slot.age_seconds,
        ]
        heard = min((age for age in ages if age is not None), default=None)
        if heard is None:
            absent.append(f"{name} (never heard)")
        elif heard > SILENT_SECONDS or (machine is not None and not machine.is_heard):
            absent.append(f"{name} ({heard:.0f} s ago)")
    return tuple(absent)


def _newcomer_problems(
    charter: Charter,
    newcomer: Newcomer,
    epoch: Epoch,
    machines: Sequence[Machine],
    leaving: tuple[NodeId, ...],
) -> list[str]:
    """Why a node may not come into a slot."""
    machine, node_id = newcomer.machine, newcomer.machine.node_id
    racks = tuple(dict.fromkeys(one.rack for one in machines))
    lines = check_rack(machine, charter.currency, racks)
    gone = {one for record in charter.retired for one in record.out}
    coming = {one for record in charter.closings_of(epoch) for one, _ in record.added}
    if node_id in charter.members_of(epoch) or node_id in coming:
        lines.append(f"{machine.name} is a member of {charter.currency} already")
    elif node_id in gone:
        lines.append(
            f"{machine.name} was retired under this identity; it needs a new one: `esnode cluster "
            "leave`, move its identity folder away, and join anew"
        )
    if not machine.is_heard:
        lines.append(f"{machine.name} does not answer ({machine.state}); start its agent first")
    slots = {slot.name: slot for slot in charter.slots}
    slot = slots.get(newcomer.slot)
    if slot is None:
        known = ", ".join(slots)
        lines.append(f"{charter.currency} has no slot {newcomer.slot}; it has {known}")
    elif slot.is_static:
        lines.append(f"slot {slot.name} is a static load: whoever stands in it never trades")
    elif slot.node_id not in (None, node_id, *leaving, *gone):
        holder = next((one.name for one in machines if one.node_id == slot.node_id), None)
        who = holder or (slot.node_id.short if slot.node_id is not None else "somebody")
        lines.append(
            f"slot {slot.name} is {who}'s; retire it first, or `esnode power retire {who} "
            f"--powered-off --replace-with {machine.name}`"
        )
    return lines
