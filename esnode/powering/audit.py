"""What rack power did on this node: a journal for operators, and the gate's file for shells.

Its own file because neither may hold up the ledger: lines wait here, and a task writes them. A disk
that refuses loses lines, counted, and nothing else. JSON lines, mode 0600; at 4 MiB the file is
renamed to `.1`, in the place of the one before. It must not know why anything was done.
"""

import contextlib
import json
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

import trio

from esnode.gate import FILE as GATE_FILE
from esnode.gate import Gate, gate_document
from esnode.status.times import utc_text

NAME = "audit.jsonl"
BYTES_MAX = 4 << 20
WAITING_MAX = 1000
_MODE = 0o600


class PowerAudit:
    """The journal of one node."""

    def __init__(self, folder: Path, unix_clock: Callable[[], float]) -> None:
        self._folder = folder
        self.path = folder / NAME
        self._unix_clock = unix_clock
        self._waiting: deque[bytes] = deque()
        self._has_work = trio.Event()
        self.lost_total = 0

    def add(self, kind: str, **fields: object) -> None:
        """One more line."""
        line = {"at": utc_text(self._unix_clock()), "kind": kind, **fields}
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.popleft()
            self.lost_total += 1
        self._waiting.append(json.dumps(line).encode() + b"\n")
        self._has_work.set()

    async def run(self) -> None:
        """Write what waits, until cancelled."""
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            lines = list(self._waiting)
            self._waiting.clear()
            if not await trio.to_thread.run_sync(self._write, lines, abandon_on_cancel=True):
                self.lost_total += len(lines)

    def _write(self, lines: list[bytes]) -> bool:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                if self.path.stat().st_size > BYTES_MAX:
                    self.path.replace(self.path.with_name(f"{NAME}.1"))
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, _MODE)
            try:
                os.write(descriptor, b"".join(lines))
            finally:
                os.close(descriptor)
        except OSError:
            return False
        return True


async def keep_gate_file(gate: Gate, folder: Path, read_boot_id: Callable[[], str]) -> None:
    """Write the gate's file whenever it changes, until cancelled."""
    while True:
        text = gate_document(gate, boot_id=read_boot_id())
        await trio.to_thread.run_sync(_write_gate, folder, text, abandon_on_cancel=True)
        if text == gate_document(gate, boot_id=read_boot_id()):
            await gate.wait_change()


def _write_gate(folder: Path, text: str) -> None:
    """Replace the file; where the disk refuses, what is there is taken away: unknown is shut."""
    path, aside = folder / GATE_FILE, folder / f".{GATE_FILE}.new"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            path.write_text("")
