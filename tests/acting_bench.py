"""One node's rules with real files, and clocks that a test sets by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from esnode.acting.leases import Lease, LeaseKind
from esnode.acting.words import Mode
from esnode.acting_means import Acting, Clocks
from esnode.audit import Entry, read_entries
from tests.acting_cases import COOLING, REAPING


@dataclass
class Bench:
    """One node's rules in a folder, over several lives of its agent."""

    folder: Path
    now: float = 0.0
    unix: float = 1_800_000_000.0
    alarms: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    can_restore: bool = True

    @property
    def control(self) -> Path:
        return self.folder / "control"

    def make(self, mode: Mode = Mode.ENFORCE) -> Acting:
        async def restore(lease: Lease) -> bool:
            self.restored.append(f"{lease.target} {lease.original}")
            return self.can_restore

        return Acting(
            (REAPING, COOLING),
            {"reaping": mode, "cooling": mode},
            self.folder,
            clocks=Clocks(
                boottime=lambda: self.now, monotonic=lambda: self.now, unix=lambda: self.unix
            ),
            tell=self.alarms.append,
            restores={LeaseKind.PLACEMENT: restore},
        )

    @asynccontextmanager
    async def life(self, mode: Mode = Mode.ENFORCE) -> AsyncIterator[Acting]:
        acting = self.make(mode)
        async with trio.open_nursery() as nursery:
            await nursery.start(acting.run)
            self.pass_by(100.0)  # the first minute, in which nothing is done
            yield acting
            nursery.cancel_scope.cancel()

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.unix += seconds

    def entries(self, phase: str) -> list[Entry]:
        return [one for one in read_entries(self.control) if one.text("phase") == phase]
