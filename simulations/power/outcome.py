"""What one run came to, and what many runs came to together.

Its own file because the documents are read by programs. It must not know what was played.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from simulations.power.checker import Violation

SCHEMA = "esnode.power-simulation/1"
QUANTILES = (50, 95, 99)
_VIOLATIONS_SHOWN_MAX = 5

Figure: TypeAlias = float | int | None
"""None: it did not come to pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run."""

    scenario: str
    nodes: int
    seed: int
    loss_ratio: float
    mistake: str = ""
    """That was switched in."""
    violations: tuple[Violation, ...]
    """The first ones."""
    violations_total: int
    virtual_seconds: float
    figures: Mapping[str, Figure]
    """Those that end in ``_total`` are summed over runs, the others are ranked."""

    @property
    def repeat(self) -> str:
        """The line that plays it again."""
        what = f"{self.scenario} --nodes {self.nodes} --seed {self.seed} --loss {self.loss_ratio:g}"
        what += f" --mistake {self.mistake}" if self.mistake else ""
        return f"python -m simulations.power {what}"

    def document(self) -> dict[str, object]:
        """For programs."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario,
            "nodes": self.nodes,
            "seed": self.seed,
            "loss_ratio": self.loss_ratio,
            "ok": self.violations_total == 0,
            "violations": [
                {"at_seconds": one.at_seconds, "promise": one.promise, "what": one.detail}
                for one in self.violations
            ],
            "violations_total": self.violations_total,
            "virtual_seconds": round(self.virtual_seconds, 3),
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Many runs of one scenario."""

    outcomes: Sequence[Outcome]
    wall_seconds: float

    @property
    def broken(self) -> list[Outcome]:
        """Runs in which a promise was broken."""
        return [one for one in self.outcomes if one.violations_total]

    def document(self) -> dict[str, object]:
        """For programs."""
        first = self.outcomes[0]
        return {
            "schema": SCHEMA,
            "summary_of": first.scenario,
            "nodes": first.nodes,
            "loss_ratio": first.loss_ratio,
            "seeds_total": len(self.outcomes),
            "seeds_with_violations_total": len(self.broken),
            "wall_seconds": round(self.wall_seconds, 3),
            "figures": dict(self._figures()),
        }

    def _figures(self) -> Iterable[tuple[str, object]]:
        for name in dict.fromkeys(name for one in self.outcomes for name in one.figures):
            values = [one.figures.get(name) for one in self.outcomes]
            known = sorted(value for value in values if value is not None)
            if name.endswith("_total"):
                yield name, sum(known)
                continue
            ranked: dict[str, Figure] = {f"p{one}": quantile(known, one) for one in QUANTILES}
            ranked["mean"] = round(sum(known) / len(known), 4) if known else None
            yield name, {**ranked, "never_total": len(values) - len(known)}

    def table(self) -> str:
        """For people."""
        first = self.outcomes[0]
        word = "ok" if not self.broken else f"FAILED in {len(self.broken)}"
        lines = [
            f"{first.scenario}, {first.nodes} nodes, {first.loss_ratio:.0%} lost, "
            f"{len(self.outcomes)} seeds: {word} ({self.wall_seconds:.1f} s)"
        ]
        figures = list(self._figures())
        width = max((len(name) for name, _ in figures), default=0)
        for name, value in figures:
            lines.append(f"  {name:<{width}}  {_written(value)}")
        for one in self.broken[:_VIOLATIONS_SHOWN_MAX]:
            violation = one.violations[0]
            lines.append(
                f"  ! seed {one.seed}, {violation.at_seconds:.3f} s, {violation.promise}: "
                f"{violation.detail} ({one.violations_total} in all)"
            )
            lines.append(f"    to repeat: {one.repeat}")
        return "\n".join(lines)


def quantile(ranked: Sequence[float | int], percent: int) -> Figure:
    """The value that so many percent do not exceed; None of nothing."""
    if not ranked:
        return None
    return round(ranked[min(len(ranked) - 1, percent * len(ranked) // 100)], 4)


def _written(value: object) -> str:
    if not isinstance(value, dict):
        return f"{value:.3f}" if isinstance(value, float) else str(value)
    parts = [f"{name} {_written(one)}" for name, one in value.items() if name != "never_total"]
    never = value["never_total"]
    return "  ".join([*parts, *([f"never in {never}"] if never else [])])
