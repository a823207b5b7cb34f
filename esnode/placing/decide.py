"""One pass over the queue: who starts where, who waits and why, who makes room for whom.

Its own file because it only puts the rules together: order, place, score, what is set aside, and
room made. The same input gives the same answer. Nothing is chosen twice within a pass (`room`). It
must not know how any of it is carried out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from esnode.placing import queueing
from esnode.placing.machine import MachinePlace
from esnode.placing.need import Need
from esnode.placing.preempting import (
    HOPELESS,
    History,
    Plan,
    Policy,
    Preemption,
    Victim,
    plan,
)
from esnode.placing.queueing import effective_priority
from esnode.placing.room import Room, Rooms
from esnode.placing.scoring import Candidate, TermRow, best, explain

LINES_MAX = 4
"""So many reasons of a waiting job are told."""

Choice = Callable[[Need, Sequence[Candidate]], int]
"""Which of the machines that have a place; there is at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A job that is to be started."""

    job: str
    node: str
    gpus: tuple[str, ...] = ()
    """UUIDs, by index."""
    level: str = ""
    """What they share, see `packing.LEVELS`."""
    minimum_watts: tuple[tuple[str, float], ...] = ()
    """What each of them is promised, by UUID."""
    has_passed: bool = False
    """It goes before one that waits longer, within what is set aside for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that has no place yet."""

    job: str
    priority: int
    """Its effective one now."""
    lines: tuple[str, ...]
    """Why, most machines first."""
    kept_on: str = ""
    """Where a place is kept for it; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Jobs that are to make room for one that waits."""

    job: str
    """For whom."""
    node: str
    level: str
    """The harshest step, see `ladder.STEPS`."""
    victims: tuple[Victim, ...]
    lines: tuple[str, ...]
    """For the audit."""


Decision = Placed | Waiting | Preempt


@dataclass(slots=True)
class _Pass:
    rooms: Rooms
    history: History
    policy: Policy
    choose: Choice
    now: float
    keepers: int = 0
    """How many jobs of this pass have set something aside."""
    planned: list[Preemption] = field(default_factory=list)
    """Of this pass: they count against the nodes' budgets."""
    told: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Why a shape waits, by its number."""


def decide(
    needs: Iterable[Need],
    machines: Sequence[MachinePlace],
    history: History,
    now: float,
    *,
    policy: Policy | None = None,
    choose: Choice = best,
) -> tuple[Decision, ...]:
    """What becomes of each waiting job now, in the order of the queue."""
    state = _Pass(
        rooms=Rooms(machines, now),
        history=history,
        policy=policy or Policy(),
        choose=choose,
        now=now,
    )
    return tuple(_decide_one(need, state) for need in queueing.order(needs, now))


def explain_places(need: Need, machines: Sequence[MachinePlace], now: float) -> tuple[TermRow, ...]:
    """Every term of every machine that has a place for a job, the best machine first."""
    return explain(need, Rooms(machines, now).candidates(need))


def _decide_one(need: Need, state: _Pass) -> Decision:
    candidates = state.rooms.candidates(need)
    if candidates:
        chosen = candidates[state.choose(need, candidates)]
        room = state.rooms.room_of(chosen.machine.node)
        state.rooms.place(need, room, chosen.fitted)
        return _placed(need, chosen)
    return (
        _passed(need, state)
        or _waiting_for_room(need, state)
        or _preempted(need, state)
        or _waiting(need, state)
    )


def _placed(need: Need, chosen: Candidate, *, has_passed: bool = False) -> Placed:
    packing = chosen.fitted.packing
    assert packing is not None
    return Placed(
        job=need.job,
        node=chosen.machine.node,
        gpus=tuple(gpu.uuid for gpu in packing.gpus),
        level=packing.level,
        minimum_watts=tuple(chosen.fitted.minimum_watts.items()),
        has_passed=has_passed,
    )


def _passed(need: Need, state: _Pass) -> Placed | None:
    """A place within what is set aside, for a job that is over before it is needed."""
    if need.runs_for_seconds is None:
        return None
    for room in state.rooms.rooms:
        found = state.rooms.passing(need, room)
        if found is not None and queueing.may_pass(need, found[1], state.now):
            chosen = Candidate(machine=room.plain, fitted=found[0], raw=())
            state.rooms.place_within(need, room, found[0])
            return _placed(need, chosen, has_passed=True)
    return None


def _waiting_for_room(need: Need, state: _Pass) -> Waiting | None:
    """Where jobs are making room already, nobody else is asked to."""
    for room in state.rooms.rooms:
        yielding = room.yielding
        if yielding and state.rooms.claim(need, room, room.future):
            name = room.plain.shown
            line = f"room is being made on {name}: {', '.join(yielding)} must go first"
            return _wait(need, state, (line,), kept_on=name)
    return None


def _preempted(need: Need, state: _Pass) -> Preempt | None:
    history = History(preemptions=(*state.history.preemptions, *state.planned))
    found: list[tuple[Room, Plan]] = []
    for room in state.rooms.rooms:
        if any(one.is_preemptible and one.priority < need.priority for one in room.future.running):
            made = plan(need, room.future, history, state.policy, state.now)
            if made is not None:
                found.append((room, made))
    if not found:
        return None
    room, made = min(found, key=lambda one: one[1].cost)
    if not state.rooms.claim(need, room, made.after):
        return None
    state.planned += [
        Preemption(job=one.job, node=made.node, at_seconds=state.now)
        for one in made.victims
        if one.level != "L1"
    ]
    return Preempt(
        job=need.job,
        node=made.node,
        level=made.level,
        victims=made.victims,
        lines=made.lines(),
    )


def _waiting(need: Need, state: _Pass) -> Waiting:
    lines = _reasons(need, state)
    kept_on = ""
    if queueing.sets_aside(need, state.keepers, state.now):
        kept_on = state.rooms.keep_one(need)
        state.keepers += bool(kept_on)
    return _wait(need, state, lines, kept_on=kept_on)


def _wait(need: Need, state: _Pass, lines: tuple[str, ...], *, kept_on: str) -> Waiting:
    return Waiting(
        job=need.job,
        priority=effective_priority(need, state.now),
        lines=lines,
        kept_on=kept_on,
    )


def _reasons(need: Need, state: _Pass) -> tuple[str, ...]:
    """One line for each rule that refuses it, with how many machines say so."""
    if not state.rooms.rooms:
        return ("no machine is known",)
    number = state.rooms.number_of(need.shape)
    if number not in state.told:
        state.told[number] = _told(need, state.rooms)
    kept_for = [one.shown for room in state.rooms.rooms for one in room.asides]
    if not kept_for:
        return state.told[number]
    kept = f"a place is kept for {', '.join(kept_for)}, which came before"
    return (*state.told[number], kept)


def _told(need: Need, rooms: Rooms) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    first: dict[str, str] = {}
    for fitted in rooms.fits(need):
        for refusal in fitted.refusals:
            counts[refusal.what] = counts.get(refusal.what, 0) + 1
            first.setdefault(refusal.what, refusal.line)
    order = sorted(counts, key=lambda what: (what in HOPELESS, -counts[what], what))
    only = len(rooms.rooms) == 1
    return tuple(
        first[what] if only else f"{counts[what]} of {len(rooms.rooms)} machines: {first[what]}"
        for what in order[:LINES_MAX]
    )
