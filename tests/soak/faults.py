"""What a soak does to agents and their disks, drawn from a seed; each fault has an end.

It must not know what is promised: whatever is done here, the promise has to hold.
"""

import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.soak import disks
from tests.soak.machines import SoakRack

KILL, STOP, FULL, TORN, BACKUP = "kill", "stop", "full", "torn", "backup"
WEIGHTS = {KILL: 4, STOP: 4, FULL: 2, TORN: 2}
"""How often each comes. An old backup comes once: its node is out for good."""
SECONDS = {KILL: (0.5, 12.0), STOP: (1.0, 10.0), FULL: (4.0, 12.0), TORN: (0.5, 8.0)}
EVERY_SECONDS = (2.0, 8.0)
AT_ONCE_MAX = 2
QUIET_SECONDS = 15.0
"""At the end nothing new is begun, so that all return before the last look."""
TORN_RECORD = b"\x00\x00\x00\x60\xde\xad\xbe\xef" + b"\x93half of an entry"
"""The head of a record of 96 bytes, and fewer of them: what a crash in a write leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One that was begun."""

    kind: str
    name: str
    begins_seconds: float
    ends_seconds: float
    mend: Callable[[], None]


class Faults:
    """All faults of one soak."""

    def __init__(self, rack: SoakRack, rng: random.Random, kinds: tuple[str, ...]) -> None:
        self._rack = rack
        self._rng = rng
        self._kinds = kinds
        self._open: list[Fault] = []
        self._next_seconds = 0.0
        self._backup: bytes | None = None
        self.done: list[Fault] = []
        self.quarantined = ""
        """Who was given an old copy of its ledger."""

    @property
    def counts(self) -> Counter[str]:
        """How many of each kind there have been."""
        return Counter(fault.kind for fault in (*self.done, *self._open))

    def take_backup(self, name: str) -> None:
        """Of the ledger of somebody who will be set back to it."""
        self._backup = self._rack.ledger_path(name).read_bytes()
        self.quarantined = name

    def play(self, now: float, *, ends_seconds: float) -> None:
        """End what is over, and begin what is due."""
        for fault in [one for one in self._open if now >= one.ends_seconds]:
            self._end(fault)
        if now < self._next_seconds or now > ends_seconds - QUIET_SECONDS:
            return
        self._next_seconds = now + self._rng.uniform(*EVERY_SECONDS)
        broken = {fault.name for fault in self._open} | {self.quarantined}
        whole = [name for name in self._rack.names if name not in broken]
        kinds = [kind for kind in WEIGHTS if kind in self._kinds]
        if len(self._open) >= AT_ONCE_MAX or not whole or not kinds:
            return
        kind = self._rng.choices(kinds, [WEIGHTS[one] for one in kinds])[0]
        self._begin(kind, self._rng.choice(whole), now)

    def set_back(self, now: float) -> None:
        """Kill the one whose backup was taken, and put the backup in the place of its ledger."""
        name, backup = self.quarantined, self._backup
        assert backup is not None
        self._rack.kill(name)
        self._rack.ledger_path(name).write_bytes(backup)
        self._rack.restart(name)
        self.done.append(
            Fault(kind=BACKUP, name=name, begins_seconds=now, ends_seconds=now, mend=lambda: None)
        )

    def end(self) -> None:
        """Mend everything."""
        for fault in list(self._open):
            self._end(fault)

    def was_quiet(self, begins_seconds: float, ends_seconds: float) -> bool:
        """Whether nobody was broken in this time."""
        return all(
            fault.ends_seconds < begins_seconds or fault.begins_seconds > ends_seconds
            for fault in (*self.done, *self._open)
        )

    def _end(self, fault: Fault) -> None:
        fault.mend()
        self._open.remove(fault)
        self.done.append(fault)

    def _begin(self, kind: str, name: str, now: float) -> None:
        rack = self._rack
        process = rack.agents[name].process
        match kind:
            case "stop":
                process.send_signal(signal.SIGSTOP)
                mend: Callable[[], None] = lambda: process.send_signal(signal.SIGCONT)  # noqa: E731
            case "full":
                disks.fill(rack.state_dir(name))
                mend = lambda: disks.free(rack.state_dir(name))  # noqa: E731
            case _:
                rack.kill(name)
                if kind == TORN:
                    with rack.ledger_path(name).open("ab") as file:
                        file.write(TORN_RECORD)
                mend = lambda: rack.restart(name)  # noqa: E731
        self._open.append(
            Fault(
                kind=kind,
                name=name,
                begins_seconds=now,
                ends_seconds=now + self._rng.uniform(*SECONDS[kind]),
                mend=mend,
            )
        )
