"""The gate of work: whether anything new may be started on this machine.

Its own file because whoever starts work (jobs, the simulated load, a unit at boot) waits here, and
only rack power opens and closes it: work runs only while it is known that the draw is bounded as it
has to be. It must not know why.
"""

import json
from pathlib import Path
from typing import Protocol

import trio

FOLDER = "power"
"""In the state folder."""
FILE = "gate.json"
SCHEMA = "esnode.power_gate/1"


class WorkloadGate(Protocol):
    """What whoever starts work may ask."""

    @property
    def is_open(self) -> bool:
        """Whether work may be started now."""
        ...

    @property
    def reason(self) -> str:
        """Why not, in one line; empty while it is open."""
        ...

    async def wait_open(self) -> None:
        """Wait until work may be started."""
        ...


class Gate:
    """The one gate of an agent; closed until somebody knows better."""

    def __init__(self, reason: str = "this agent has just begun") -> None:
        self._reason = reason
        self.is_governed = False
        """Whether rack power has ever had a say in this life of the agent."""
        self._opened = trio.Event()
        self._changed = trio.Event()

    @property
    def is_open(self) -> bool:
        """Whether work may be started now."""
        return not self._reason

    @property
    def reason(self) -> str:
        """Why not, in one line; empty while it is open."""
        return self._reason

    async def wait_open(self) -> None:
        """Wait until work may be started."""
        while self._reason:
            await self._opened.wait()

    async def wait_change(self) -> None:
        """Wait until it is opened, closed, or closed for another reason."""
        await self._changed.wait()

    def open(self, *, is_governed: bool = False) -> None:
        """Let work start."""
        self._set("", is_governed=is_governed)

    def close(self, reason: str, *, is_governed: bool = False) -> None:
        """Let no more work start."""
        self._set(reason, is_governed=is_governed)

    def _set(self, reason: str, *, is_governed: bool) -> None:
        is_governed = is_governed or self.is_governed
        if (reason, is_governed) == (self._reason, self.is_governed):
            return
        self._reason, self.is_governed = reason, is_governed
        changed, self._changed = self._changed, trio.Event()
        changed.set()
        if not reason:
            opened, self._opened = self._opened, trio.Event()
            opened.set()


def gate_document(gate: Gate, *, boot_id: str) -> str:
    """The gate as shells read it. What another boot wrote says nothing of this one."""
    document = {
        "schema": SCHEMA,
        "boot_id": boot_id,
        "is_open": gate.is_open,
        "is_governed": gate.is_governed,
        "reason": gate.reason,
    }
    return json.dumps(document) + "\n"


def closed_line(file: Path, *, boot_id: str) -> str | None:
    """Why no work may be started, by the file of an agent; None where it may.

    A machine whose agent never governed anything has no such file, and may work.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["is_governed"] is False:
            return None
        if document["boot_id"] != boot_id:
            return "the machine has started anew, and its power cap is not set yet"
        return None if document["is_open"] is True else f"the gate is shut: {document['reason']}"
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return f"{file} cannot be read"
