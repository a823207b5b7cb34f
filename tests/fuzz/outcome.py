"""What came of a run, and what it may cost in memory."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

WARM_UP = 0.25
"""The part of a run after which nothing may grow any more: bounded tables are full by then."""
GROWTH_BYTES_MAX = 4 << 20

Progress = Callable[[int, int], None]


@dataclass
class Outcome:
    """What came of a run."""

    kind: str
    seed: int
    count: int = 0
    wall_seconds: float = 0.0
    figures: dict[str, object] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.violations

    def document(self) -> dict[str, object]:
        return {
            "schema": "esnode.fuzz/1",
            "kind": self.kind,
            "seed": self.seed,
            "count": self.count,
            "ok": self.is_ok,
            "violations": self.violations,
            "wall_seconds": round(self.wall_seconds, 1),
            "figures": self.figures,
        }


def resident_bytes() -> int:
    """What this process has of memory, now that nothing unreachable is left."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
