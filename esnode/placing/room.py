"""The machines during one pass: as they are, as they are kept, and as they will be.

Its own file because a pass must not give one GPU, one core or one watt twice, and that is all that
this one sees to. It must not know who is next, nor which machine is the better one.

Each machine is held three times: `plain` with the jobs that this pass has placed; `kept`, which is
also without what is set aside or claimed for those that wait; and `future`, which is `kept` once
the jobs that are making room have done so. Watts that a rack has yet to give are shared by its
machines: what one takes, the others have no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from esnode.placing.fitting import Fit, fit, free_gpus, set_aside, settle, usable_gpus
from esnode.placing.machine import MachinePlace, release, squeeze
from esnode.placing.need import Need
from esnode.placing.queueing import ready_at_seconds
from esnode.placing.scoring import Candidate, candidate


@dataclass(slots=True)
class Room:
    """One machine in its three states."""

    plain: MachinePlace
    kept: MachinePlace
    future: MachinePlace
    asides: list[Need] = field(default_factory=list)
    """Whose places are kept on it, in their order."""
    is_claimed: bool = False
    """Whether room is being made on it for somebody."""
    known: dict[int, Candidate | Fit] = field(default_factory=dict)
    """What `kept` says to a shape, by the shape's number; emptied whenever it changes."""

    @property
    def yielding(self) -> tuple[str, ...]:
        """Who is making room already."""
        return tuple(job.job for job in self.plain.running if job.is_stopping or job.is_pressed)


class Rooms:
    """All machines of a pass."""

    def __init__(self, machines: Sequence[MachinePlace], now: float) -> None:
        self._now = now
        self.rooms = [
            Room(plain=one, kept=one, future=_without_stopping(one))
            for one in sorted(machines, key=lambda one: one.node)
        ]
        self._by_node = {room.plain.node: room for room in self.rooms}
        self._racks: dict[str, list[Room]] = {}
        for room in self.rooms:
            self._racks.setdefault(room.plain.rack, []).append(room)
        self._shapes: dict[Need, int] = {}
        self._refused: dict[int, None] = {}

    def candidates(self, need: Need) -> list[Candidate]:
        """Every machine that has a place for it; a shape that was refused stays refused."""
        shape = need.shape
        number = self.number_of(shape)
        if number in self._refused:
            return []
        said = (_asked(room, shape, number) for room in self.rooms)
        found = [one for one in said if isinstance(one, Candidate)]
        if not found:
            self._refused[number] = None
        return found

    def fits(self, need: Need) -> list[Fit]:
        """What each machine says to it, in the order of `rooms`."""
        shape = need.shape
        number = self.number_of(shape)
        said = [_asked(room, shape, number) for room in self.rooms]
        return [one.fitted if isinstance(one, Candidate) else one for one in said]

    def number_of(self, shape: Need) -> int:
        """Counted as they come: a number is looked up faster than a shape."""
        return self._shapes.setdefault(shape, len(self._shapes))

    def room_of(self, node: str) -> Room:
        """The one of a node."""
        return self._by_node[node]

    def place(self, need: Need, room: Room, fitted: Fit) -> None:
        """The job is on it, in all three states."""
        self._take(room, fitted.added_watts)
        room.plain = settle(need, room.plain, fitted, self._now)
        room.kept = settle(need, room.kept, fitted, self._now)
        room.future = settle(need, room.future, fitted, self._now)
        room.known.clear()

    def passing(self, need: Need, room: Room) -> tuple[Fit, float] | None:
        """A place within what is set aside, and when it will be needed by whom it is kept for."""
        if not room.asides or room.is_claimed:
            return None
        fitted = fit(need, room.plain)
        if fitted.packing is None:
            return None
        return fitted, min(self._ready_at(one, room.plain) for one in room.asides)

    def place_within(self, need: Need, room: Room, fitted: Fit) -> None:
        """The job is on what was set aside, and what is left is set aside anew."""
        self._take(room, fitted.added_watts)
        room.plain = settle(need, room.plain, fitted, self._now)
        room.kept = room.plain
        for one in room.asides:
            room.kept = set_aside(one, room.kept, self._now)
        room.future = _without_stopping(room.kept)
        room.known.clear()

    def keep_one(self, need: Need) -> str:
        """Set aside what is free where the fewest GPUs are missing; the node's name, or none."""
        missing: list[tuple[int, int]] = []
        for number, room in enumerate(self.rooms):
            if len(usable_gpus(need, room.plain)) >= need.gpu_count and not room.is_claimed:
                free = len(free_gpus(need, room.kept))
                missing.append((max(0, need.gpu_count - free), number))
        for _, number in sorted(missing):
            room = self.rooms[number]
            empty = release(room.plain, [job.job for job in room.plain.running])
            if fit(need, empty).packing is not None:
                self._set_aside(need, room)
                return room.plain.shown
        return ""

    def claim(self, need: Need, room: Room, future: MachinePlace) -> bool:
        """Keep what it will have once others are gone; whether it then has a place."""
        fitted = fit(need, future)
        if fitted.packing is None:
            return False
        self._take(room, fitted.added_watts)
        left = replace(
            future.power,
            obtainable_watts=room.future.power.obtainable_watts,
            transferable_watts=room.future.power.transferable_watts,
        )
        room.future = settle(need, replace(future, power=left), fitted, self._now)
        room.kept = settle(need, room.kept, fitted, self._now)
        room.is_claimed = True
        room.known.clear()
        return True

    def _set_aside(self, need: Need, room: Room) -> None:
        after = set_aside(need, room.kept, self._now).committed_watts or 0.0
        self._take(room, after - (room.kept.committed_watts or 0.0))
        room.kept = set_aside(need, room.kept, self._now)
        room.future = set_aside(need, room.future, self._now)
        room.asides.append(need)
        room.known.clear()

    def _ready_at(self, need: Need, machine: MachinePlace) -> float:
        usable = [gpu.uuid for gpu in usable_gpus(need, machine)]
        missing = need.gpu_count - len(free_gpus(need, machine))
        return ready_at_seconds(machine, usable, missing)

    def _take(self, room: Room, watts: float) -> None:
        """The rack's watts that a machine takes are no longer there for the others.

        To be called before the machine is changed.
        """
        power, committed = room.kept.power, room.kept.committed_watts
        if power.obtainable_watts is None or committed is None or power.transferable_watts <= 0:
            return
        own = max(0.0, power.obtainable_watts - power.transferable_watts - committed)
        taken = min(power.transferable_watts, max(0.0, watts - own))
        if taken <= 0:
            return
        for mate in self._racks[room.plain.rack]:
            is_taker = mate is room
            mate.plain = _with_less(mate.plain, taken, is_taker=is_taker)
            mate.kept = _with_less(mate.kept, taken, is_taker=is_taker)
            mate.future = _with_less(mate.future, taken, is_taker=is_taker)
            mate.known.clear()


def _asked(room: Room, shape: Need, number: int) -> Candidate | Fit:
    said = room.known.get(number)
    if said is None:
        fitted = fit(shape, room.kept)
        said = fitted if fitted.packing is None else candidate(shape, room.kept, fitted)
        room.known[number] = said
    return said


def _without_stopping(machine: MachinePlace) -> MachinePlace:
    stopping = [job.job for job in machine.running if job.is_stopping]
    pressed = [job.job for job in machine.running if job.is_pressed]
    after = release(machine, stopping) if stopping else machine
    return squeeze(after, pressed) if pressed else after


def _with_less(machine: MachinePlace, taken: float, *, is_taker: bool) -> MachinePlace:
    power = machine.power
    less = min(taken, power.transferable_watts)
    obtainable = power.obtainable_watts
    if not is_taker and obtainable is not None:
        obtainable = max(0.0, obtainable - less)
    spare = power.spare_watts
    left = replace(
        power,
        obtainable_watts=obtainable,
        transferable_watts=power.transferable_watts - less,
        spare_watts=None if spare is None else max(0.0, spare - less),
    )
    return replace(machine, power=left)
