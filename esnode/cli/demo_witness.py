"""What simulated machines may draw together, by the histories beside their files and nothing else.

Its own file because a witness must not believe whom it watches: it reads the lines by itself, with
figures of its own for the parts (a test compares them with the catalogue), and imports nothing of
this program. Where it could be wrong it counts too much: a limit that goes up counts from the
moment when it was asked for, one that goes down until the board has surely settled, and a board
that nobody has limited, or that has lost its limit, counts at its maximum.
"""

import heapq
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SUPPLY_RATIO = 0.92
"""The worst power supply that agents reckon with. Source: 80 PLUS Platinum at half load."""
LATE_SECONDS = 1.0
"""A line is dated before it is written: younger instants are judged at the next look."""
OVER_KEPT_MAX = 20
OVER_WATTS = 1e-6
"""Sums are of binary fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One kind of GPU, as far as a bound needs it."""

    maximum_watts: int
    settle_seconds: float
    """From a changed limit to the draw that obeys it."""
    chassis_watts: float
    """Its share of all else in the machine."""


BOARDS: Mapping[str, Board] = {
    "h100": Board(maximum_watts=700, settle_seconds=1.2, chassis_watts=300.0),
    "h200": Board(maximum_watts=700, settle_seconds=1.2, chassis_watts=300.0),
    "b200": Board(maximum_watts=1000, settle_seconds=1.2, chassis_watts=450.0),
    "a100": Board(maximum_watts=400, settle_seconds=1.2, chassis_watts=260.0),
    "l40s": Board(maximum_watts=350, settle_seconds=1.2, chassis_watts=180.0),
}


@dataclass(slots=True, kw_only=True)
class Gpu:
    """One board: the limits that it was given, one after the other."""

    board: Board
    limits: list[tuple[float, int]] = field(default_factory=list)
    """From when on, and how many watts."""

    def in_force_watts(self, at_seconds: float) -> int | None:
        """The limit that it obeys at an instant; None before the first."""
        obeyed: int | None = None
        for number, (at, watts) in enumerate(self.limits):
            if at + (self.board.settle_seconds if number else 0.0) <= at_seconds:
                obeyed = watts
        return obeyed


class MachineHistory:
    """One machine's history, read as it grows."""

    def __init__(self, path: Path) -> None:
        """`path` is the machine's file; its history lies beside it."""
        self._path = path
        self._history_path = path.with_name(path.name + ".history")
        self._offset_bytes = 0
        self.gpus: dict[str, Gpu] = {}

    @property
    def chassis_watts(self) -> float:
        """What all but the boards draws, at most."""
        return sum(gpu.board.chassis_watts for gpu in self.gpus.values())

    def read(self) -> int:
        """Take in what is new; how many limits that were.

        Raises:
            OSError, ValueError: there is no such machine, or it cannot be read.
        """
        if not self.gpus:
            self._read_boards()
        with self._history_path.open("rb") as file:
            file.seek(self._offset_bytes)
            text = file.read()
        lines = [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]
        while lines and lines[-1]["remaining"]:
            lines.pop()  # a change whose last line is missing has not happened
        whole = text.split(b"\n", len(lines))[: len(lines)]
        self._offset_bytes += sum(len(line) + 1 for line in whole)
        return sum(self._take(line) for line in lines)

    def _read_boards(self) -> None:
        machine = json.loads(self._path.read_bytes())["state"]["machine"]
        self.gpus = {str(one["uuid"]): Gpu(board=BOARDS[one["part"]]) for one in machine["gpus"]}

    def _take(self, line: dict[str, object]) -> int:
        at, event = line["at_seconds"], line["event"]
        assert isinstance(at, float | int)
        assert isinstance(event, dict)
        match line["change"]:
            case "limit":
                limited = {str(event["gpu"]): int(event["watts"])}
            case "created" | "reboot":
                limited = {uuid: gpu.board.maximum_watts for uuid, gpu in self.gpus.items()}
            case "fault" if event["kind"] == "forget-limit":
                limited = {str(event["gpu"]): self.gpus[str(event["gpu"])].board.maximum_watts}
            case _:
                limited = {}
        for uuid, watts in limited.items():
            self.gpus[uuid].limits.append((float(at), watts))
        return len(limited)

    def in_force_watts(self, at_seconds: float) -> int | None:
        """The limits that its boards obey at an instant, together; None where one has none yet."""
        known = [gpu.in_force_watts(at_seconds) for gpu in self.gpus.values()]
        watts = [one for one in known if one is not None]
        return sum(watts) if watts and len(watts) == len(known) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """An instant at which too much could be drawn."""

    at_seconds: float
    watts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found so far."""

    instants: int
    """At which something changed, and the sum was looked at."""
    over: int
    worst_watts: float | None
    now_watts: float | None
    overs: tuple[Over, ...] = ()
    """The first of them."""


class Witness:
    """The machines of one rack under one budget."""

    def __init__(
        self, paths: Iterable[Path], *, allowed_watts: float, since_seconds: float
    ) -> None:
        """`since_seconds`, of the clock since boot: from then on the sum must be allowed."""
        self.machines = [MachineHistory(path) for path in paths]
        self.allowed_watts = allowed_watts
        self.since_seconds = since_seconds
        self._taken: dict[tuple[int, str], int] = {}
        self._due: list[tuple[float, int, int, str, int]] = []
        """When, whether it begins (0) or ends (1), at which machine, which board, how many."""
        self._in_force: dict[tuple[int, str], list[int]] = {}
        self._sum_watts = 0
        self._instants = 0
        self._over = 0
        self._overs: list[Over] = []
        self._worst_watts: float | None = None

    def look(self, now_seconds: float) -> Verdict:
        """Take in what is new, and judge every instant up to shortly before now.

        Raises:
            OSError, ValueError: a machine's files cannot be read.
        """
        self._read()
        self._judge(now_seconds - LATE_SECONDS)
        return self._verdict()

    def conclude(self) -> Verdict:
        """Judge everything anew, once nothing is written any more."""
        whole = Witness([], allowed_watts=self.allowed_watts, since_seconds=self.since_seconds)
        self._read()
        whole.machines = self.machines
        whole._take_limits()
        whole._judge(math.inf)
        return whole._verdict()

    def _read(self) -> None:
        for machine in self.machines:
            machine.read()
        self._take_limits()

    def _take_limits(self) -> None:
        """Put what each board may newly draw in line; the limit before ends once that settles.

        A board that is lowered twice in a moment draws by the highest of what has not ended.
        """
        for number, machine in enumerate(self.machines):
            for uuid, gpu in machine.gpus.items():
                key, limits = (number, uuid), gpu.limits
                for place in range(self._taken.get(key, 0), len(limits)):
                    at, watts = limits[place]
                    heapq.heappush(self._due, (at, 0, number, uuid, watts))
                    if place:
                        end = at + gpu.board.settle_seconds
                        heapq.heappush(self._due, (end, 1, number, uuid, limits[place - 1][1]))
                self._taken[key] = len(limits)

    def _judge(self, until_seconds: float) -> None:
        while self._due and self._due[0][0] <= until_seconds:
            at = self._due[0][0]
            self._change_all(at, is_end=False)
            self._check(at)  # what begins and what ends at one instant may meet
            self._change_all(at, is_end=True)

    def _change_all(self, at_seconds: float, *, is_end: bool) -> None:
        """All that begins, or ends, at this instant: what begins stands first in line."""
        while self._due and self._due[0][:2] == (at_seconds, int(is_end)):
            _, _, number, uuid, watts = heapq.heappop(self._due)
            self._change(number, uuid, watts, is_end=is_end)

    def _change(self, number: int, uuid: str, watts: int, *, is_end: bool) -> None:
        claims = self._in_force.setdefault((number, uuid), [])
        before = max(claims, default=0)
        if is_end:
            claims.remove(watts)
        else:
            claims.append(watts)
        self._sum_watts += max(claims, default=0) - before

    def _check(self, at_seconds: float) -> None:
        if at_seconds < self.since_seconds:
            return
        watts = self._watts()
        self._instants += 1
        self._worst_watts = max(watts, self._worst_watts or 0.0)
        if watts > self.allowed_watts + OVER_WATTS:
            self._over += 1
            if len(self._overs) < OVER_KEPT_MAX:
                self._overs.append(Over(at_seconds=at_seconds, watts=watts))

    def _watts(self) -> float:
        """At the inlets of all machines."""
        chassis = sum(machine.chassis_watts for machine in self.machines)
        return (self._sum_watts + chassis) / SUPPLY_RATIO

    def _verdict(self) -> Verdict:
        return Verdict(
            instants=self._instants,
            over=self._over,
            worst_watts=self._worst_watts,
            now_watts=self._watts() if self._in_force else None,
            overs=tuple(self._overs),
        )


def total(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """The instants looked at in all racks, and those that were over."""
    return sum(one.instants for one in verdicts), sum(one.over for one in verdicts)
