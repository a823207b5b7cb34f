"""What a run says of itself: a document for programs, a table for people.

Its own file because the document is a contract. It must not know stories.
"""

from dataclasses import dataclass, field

from simulations.checkers import Violation
from simulations.stage import Figure

SCHEMA = "esnode.simulation/1"
_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run of one scenario."""

    scenario: str
    nodes: int
    seed: int
    violations: tuple[Violation, ...]
    violations_total: int
    trace_digest: str
    virtual_seconds: float
    wall_seconds: float
    figures: dict[str, Figure] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether nothing went wrong."""
        return self.violations_total == 0

    @property
    def repeat(self) -> str:
        """The line that plays it again."""
        what = f"{self.scenario} --nodes {self.nodes} --seed {self.seed}"
        return f"python -m simulations run {what}"

    def document(self) -> dict[str, object]:
        """For programs."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario,
            "nodes": self.nodes,
            "seed": self.seed,
            "ok": self.is_ok,
            "violations": [
                {"at_seconds": one.at_seconds, "node": one.node, "what": one.what}
                for one in self.violations
            ],
            "violations_total": self.violations_total,
            "trace_digest": self.trace_digest,
            "virtual_seconds": round(self.virtual_seconds, 3),
            "wall_seconds": round(self.wall_seconds, 3),
            "figures": self.figures,
        }

    def table(self) -> str:
        """For people."""
        word = "ok" if self.is_ok else "FAILED"
        head = f"{self.scenario}, {self.nodes} nodes, seed {self.seed}: {word}"
        times = f"{self.virtual_seconds:.1f} s of the fleet in {self.wall_seconds:.1f} s"
        width = max((len(name) for name in self.figures), default=0)
        lines = [f"{head} ({times})"]
        lines += [f"  {name:<{width}}  {_written(value)}" for name, value in self.figures.items()]
        for one in self.violations[:_SHOWN_MAX]:
            lines.append(f"  ! {one.at_seconds:.3f} s  {one.node}: {one.what}")
        if self.violations_total > _SHOWN_MAX:
            lines.append(f"  ! and {self.violations_total - _SHOWN_MAX} more")
        if not self.is_ok:
            lines.append(f"  to repeat: {self.repeat}")
        return "\n".join(lines)


def _written(value: Figure) -> str:
    if value is None:
        return "never"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
