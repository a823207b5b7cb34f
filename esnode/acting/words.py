"""The words of acting: features and their modes, what is proposed, on what evidence, what is said.

Pure values. Their own file because whoever proposes needs these alone, and never the rules. They
must not know how anything is done.
"""

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How far a feature may go."""

    OFF = "off"
    OBSERVE = "observe"
    """It says what it would do."""
    ENFORCE = "enforce"


class Result(StrEnum):
    """How an action went."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Nobody can say: it timed out, or this agent ended in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One thing that this node may do by itself."""

    name: str
    summary: str
    default_mode: Mode = Mode.OBSERVE
    per_hour_count: int
    """Its budget: one more than that within an hour, and it falls back to observing."""
    dwell_seconds: float
    """How long its condition has to last before it acts."""
    cooldown_seconds: float
    """Between two actions of one rule on one target."""


THERMAL = Feature(
    name="thermal",
    summary="gives no new work to a GPU that is too hot",
    per_hour_count=60,
    dwell_seconds=0.0,  # thermal care has its own: three of four looks
    cooldown_seconds=10.0,
)
PREEMPTION = Feature(
    name="preemption",
    summary="stops a preemptible job to make room for one that comes first",
    per_hour_count=6,
    dwell_seconds=30.0,
    cooldown_seconds=600.0,
)
FEATURES = (THERMAL, PREEMPTION)
"""Those that this version has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One fact that a proposal rests on."""

    what: str
    """``temperature margin``."""
    value: float | str | None
    """``None`` where it is unknown, and then nothing is done."""
    unit: str = ""
    age_seconds: float
    interval_seconds: float
    """How often its source is asked."""
    source: str
    """Which collector or driver says so."""
    is_source_failed: bool = False

    @property
    def line(self) -> str:
        """For people."""
        if self.value is None:
            return f"{self.what} unknown ({self.source})"
        shown = f"{self.value:g}" if isinstance(self.value, int | float) else self.value
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.what} {shown}{unit} ({self.source}, {self.age_seconds:.0f} s ago)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a feature wants to do to one target, and why."""

    feature: str
    rule: str
    """Which rule of the feature: ``severe-heat``."""
    target: str
    """What it is, beyond doubt: ``gpu GPU-1a2b``, ``job 01J...``, ``pid 77 started 123 boot x``."""
    action: str
    """In one line: ``drain``, ``stop with 30 s of grace``."""
    evidence: tuple[Evidence, ...]
    expects: str = ""
    """What it should bring: ``frees 2 GPUs``."""
    about: tuple[str, ...] = ()
    """Other names under which people may ask for it: job ids, GPUs, pids, units."""
    gpu_owner: str | None = None
    """Whose GPU it takes away; ``None`` where it takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Leave to do one proposal, once."""

    id: str
    proposal: Proposal
    at_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """Do it: first the audit's line, then the deed, then `Rules.done`."""

    ticket: Ticket

    @property
    def line(self) -> str:
        """For people."""
        proposal = self.ticket.proposal
        return f"{proposal.action}: {proposal.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Would:
    """It would be done if the feature were enforced."""

    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """It is not done."""

    reason: str
    """One word, for metrics: see `rules`."""
    line: str
    alarm: str = ""
    """What somebody has to look at; said once, when it begins."""


Verdict = Do | Would | Skip
