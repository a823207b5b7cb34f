"""The simulated machine's two files: the state, and the history of every change to it.

Their purpose is that the machine is as independent of the agent as a real one: a change is durable
before its caller hears of it, and after a `kill -9` at any instant the files still say one
thing. The rules:

1. One writer at a time, by a lock on ``PATH.lock``.
2. A change is a line of ``PATH.history``, forced to disk; then ``PATH`` is replaced whole. The
   history therefore leads: lines that the state has not seen are replayed by whoever reads next.
3. A last line without its end, or a change without its last line, was never acknowledged: it is
   cut, and the cut is itself recorded.
4. A reader takes no lock. It reads the state whole, then whatever complete lines follow it.

It knows no NVML and no agent. Times are handed in by `Clocks`.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from esnode.drivers.simulated.changes import INLET_DEFAULT_CELSIUS, as_of, follow
from esnode.drivers.simulated.clocks import Clocks
from esnode.drivers.simulated.codec import (
    HistoryLine,
    SavedState,
    Undecodable,
    UnknownFormat,
    decode_line,
    decode_state,
    encode_line,
    encode_state,
)
from esnode.drivers.simulated.files import (
    LockedTooLong,
    append_durably,
    exclusive_lock,
    fingerprint,
    open_to_read,
    replace_whole,
)
from esnode.drivers.simulated.machine import (
    ChangeRefused,
    Created,
    Event,
    Machine,
    Rebooted,
    Repaired,
)
from esnode.drivers.simulated.parts import canonical_spec


class StoreFailed(Exception):
    """The machine's files cannot be used. The text is one line that says what to do."""


class NoMachine(StoreFailed):
    """There is no simulated machine at this path."""


Plan = Callable[[Machine], Sequence[Event]]
"""Decides under the lock, from the machine as it is now, what shall happen to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """The newest machine that the files describe, and what was wrong with them."""

    sequence: int
    machine: Machine
    history_bytes: int
    """Where the complete lines of the history end."""
    torn_bytes: int = 0
    """How much of an unfinished line follows them."""
    is_rebuilt: bool = False
    """The state file was damaged and the history stood in for it."""


class Store:
    """One simulated machine's files. Safe to use from several threads and processes."""

    def __init__(self, path: Path, *, clocks: Clocks | None = None) -> None:
        self.path = path
        self.history_path = path.with_name(path.name + ".history")
        self.clocks = clocks or Clocks()
        self.repairs: tuple[str, ...] = ()
        """What this object mended in the files, for the operator to hear of."""
        self._lock_path = path.with_name(path.name + ".lock")
        self._cache: tuple[tuple[int, ...], Machine] | None = None

    def read(self) -> Machine:
        """The machine as of its last change, without a lock and without writing.

        Raises:
            StoreFailed: there is no machine, or its files cannot be used.
        """
        try:
            key = (*fingerprint(self.path), fingerprint(self.history_path)[1])
            cached = self._cache
            if cached is not None and cached[0] == key:
                return cached[1]
            machine = self._load().machine
        except OSError as error:
            raise self._failed("read", error) from None
        self._cache = (key, machine)
        return machine

    def read_now(self) -> Machine:
        """The machine at this instant: `read`, carried to now.

        Raises:
            StoreFailed: as `read`.
        """
        return as_of(self.read(), self.clocks.now_seconds(), self.clocks.host_boot_id())

    def create(
        self,
        spec: str,
        *,
        inlet_celsius: float = INLET_DEFAULT_CELSIUS,
        make_seed: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> Machine:
        """Open the machine, mending its files if need be, or build it where there is none.

        Raises:
            UnknownSpec: there is no such machine.
            StoreFailed: the files cannot be used, or hold another machine.
        """
        wanted = canonical_spec(spec)
        with self._locked(make_parent=True):
            try:
                loaded = self._load()
            except NoMachine:
                event = Created(
                    spec=wanted,
                    seed=make_seed(),
                    host_boot_id=self.clocks.host_boot_id(),
                    inlet_celsius=inlet_celsius,
                )
                return self._write(None, [event], "created")
            if loaded.machine.spec != wanted:
                raise StoreFailed(
                    f"{self.path} holds a {loaded.machine.spec}, not a {wanted}: use"
                    f" simulated:{loaded.machine.spec}, or remove {self.path} and"
                    f" {self.history_path} for a new machine"
                )
            return self._write(loaded, self._overdue(loaded), "opened")

    def change(self, plan: Plan, *, cause: str) -> Machine:
        """Let the planned events happen to the machine now, all of them or none.

        Raises:
            ChangeRefused: the machine cannot do that; nothing was changed.
            StoreFailed: the files cannot be used; nothing was changed.
        """
        try:
            is_there = any(fingerprint(self.path)) or any(fingerprint(self.history_path))
        except OSError as error:  # a folder that we may not look into
            raise self._failed("use", error) from None
        if not is_there:
            raise self._no_machine()
        with self._locked(make_parent=False):
            loaded = self._load()
            overdue = self._overdue(loaded)
            if overdue:
                self._write(loaded, overdue, "found by the next writer")
                loaded = self._load()
            clocks = self.clocks
            now = as_of(loaded.machine, clocks.now_seconds(), clocks.host_boot_id())
            return self._write(loaded, plan(now), cause)

    def history(self) -> tuple[HistoryLine, ...]:
        """Every complete line of the history, oldest first.

        Raises:
            StoreFailed: there is none, or it is damaged before its last line.
        """
        try:
            return self._read_history(0, 0)[0]
        except FileNotFoundError:
            raise self._no_machine() from None
        except OSError as error:
            raise self._failed("read", error) from None

    def _overdue(self, loaded: _Loaded) -> list[Event]:
        """What happened to the files or to the host since the last change."""
        events: list[Event] = []
        if loaded.torn_bytes:
            events.append(Repaired(what=f"cut {loaded.torn_bytes} bytes of an unfinished line"))
        if loaded.is_rebuilt:
            events.append(Repaired(what="rebuilt the state from the history"))
        host_boot_id = self.clocks.host_boot_id()
        if loaded.machine.host_boot_id != host_boot_id:
            events.append(Rebooted(host_boot_id=host_boot_id, is_host_reboot=True))
        return events

    def _load(self) -> _Loaded:
        """Read the state and the part of the history that follows it, or the whole history."""
        try:
            with open_to_read(self.path) as file:
                text = file.read()
        except FileNotFoundError:
            return self._rebuild("is missing")
        try:
            state = decode_state(text)
        except UnknownFormat as error:
            raise StoreFailed(
                f"{self.path} was written by another version of esnode ({error}): remove it and"
                f" {self.history_path} for a new machine"
            ) from None
        except Undecodable as error:
            return self._rebuild(f"is damaged ({error})")
        try:
            return self._replay(state.machine, state.sequence, state.history_bytes)
        except FileNotFoundError:
            raise StoreFailed(
                f"{self.history_path} is missing, and the machine's past with it: remove"
                f" {self.path} for a new machine"
            ) from None

    def _rebuild(self, what: str) -> _Loaded:
        """Make the machine from its history alone."""
        try:
            return self._replay(None, 0, 0)
        except (NoMachine, FileNotFoundError):
            if not self.path.exists():
                raise self._no_machine() from None
            reason = "holds no change"
        except StoreFailed as error:
            reason = f"cannot replace it: {error}"
        raise StoreFailed(
            f"{self.path} {what} and {self.history_path} {reason}: remove both for a new machine"
        )

    def _replay(self, machine: Machine | None, sequence: int, offset: int) -> _Loaded:
        lines, end, torn = self._read_history(offset, sequence)
        is_rebuilt = machine is None
        for line in lines:
            try:
                machine = follow(machine, line.event, line.at_seconds)
            except ChangeRefused as error:
                raise StoreFailed(
                    f"{self.history_path} change {line.sequence} cannot be replayed: {error}"
                ) from None
        if machine is None:
            raise self._no_machine()
        return _Loaded(
            sequence=sequence + len(lines),
            machine=machine,
            history_bytes=end,
            torn_bytes=torn,
            is_rebuilt=is_rebuilt,
        )

    def _read_history(self, offset: int, sequence: int) -> tuple[tuple[HistoryLine, ...], int, int]:
        """The complete lines after an offset, where they end, and the length of a torn rest."""
        with open_to_read(self.history_path) as file:
            if os.fstat(file.fileno()).st_size < offset:
                raise StoreFailed(
                    f"{self.history_path} ends before the last change of {self.path}: it was cut;"
                    " remove both for a new machine"
                )
            file.seek(offset)
            text = file.read()
        complete, newline, torn = text.rpartition(b"\n")
        texts = complete.split(b"\n") if newline else []
        lines: list[HistoryLine] = []
        for raw in texts:
            number = sequence + len(lines) + 1
            try:
                line = decode_line(raw)
            except Undecodable as error:
                raise StoreFailed(
                    f"{self.history_path} change {number} is damaged: {error}"
                ) from None
            if line.sequence != number:
                raise StoreFailed(
                    f"{self.history_path} has change {line.sequence} in the place of {number}"
                )
            lines.append(line)
        torn_bytes = len(torn)
        while lines and lines[-1].remaining:
            torn_bytes += len(texts[len(lines) - 1]) + len(newline)
            lines.pop()
        return tuple(lines), offset + len(text) - torn_bytes, torn_bytes

    def _write(self, loaded: _Loaded | None, events: Sequence[Event], cause: str) -> Machine:
        """Append the events to the history, then replace the state. Called under the lock."""
        machine = loaded.machine if loaded else None
        offset = loaded.history_bytes if loaded else 0
        sequence = loaded.sequence if loaded else 0
        wall = self.clocks.wall_seconds()
        text = b""
        for remaining, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
            at = self._instant_of(machine, event)
            machine = follow(machine, event, at)
            sequence += 1
            line = HistoryLine(
                sequence=sequence,
                at_seconds=at,
                wall_seconds=wall,
                cause=cause,
                actor_pid=os.getpid(),
                event=event,
                remaining=remaining,
            )
            text += encode_line(line)
        assert machine is not None, "a machine begins with its creation"
        if not events:
            return machine
        try:
            append_durably(self.history_path, text, at=offset)
        except OSError as error:
            raise self._failed("write", error) from None
        # The change has happened from here on: whoever reads replays what the state lacks.
        state = SavedState(sequence=sequence, history_bytes=offset + len(text), machine=machine)
        try:
            replace_whole(self.path, encode_state(state))
        except OSError as error:
            self.repairs += (f"{self._failed('replace', error)}; its history holds the change",)
        self.repairs += tuple(event.what for event in events if isinstance(event, Repaired))
        return machine

    def _instant_of(self, machine: Machine | None, event: Event) -> float:
        """When an event happens: now, but never before the machine's last change.

        A host reboot happens at second 0 of the new boot's clock; what the files say of the boot
        before it is dated at that boot's last change.
        """
        if isinstance(event, Rebooted) and event.is_host_reboot:
            return 0.0
        if machine is None:
            return self.clocks.now_seconds()
        if machine.host_boot_id != self.clocks.host_boot_id():
            return machine.at_seconds
        return max(machine.at_seconds, self.clocks.now_seconds())

    @contextlib.contextmanager
    def _locked(self, *, make_parent: bool) -> Iterator[None]:
        try:
            if make_parent:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with exclusive_lock(self._lock_path):
                yield
        except LockedTooLong as error:
            raise StoreFailed(
                f"{self.path} has been locked by another process {error}: see who holds"
                f" {self._lock_path}"
            ) from None
        except OSError as error:
            raise self._failed("use", error) from None

    def _no_machine(self) -> NoMachine:
        return NoMachine(
            f"no simulated machine at {self.path}: start the agent with --hardware"
            " simulated:h100x8 first, or name its file with --path"
        )

    def _failed(self, verb: str, error: OSError) -> StoreFailed:
        reason = error.strerror or type(error).__name__
        return StoreFailed(f"cannot {verb} the simulated machine {self.path}: {reason}")
