"""What rack power has at hand on this machine, and the words that its parts use for it.

Its own file so that the life of a governed node and the comings and goings of its cluster are two
files that share these. It must not know either.
"""

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from esnode.gate import Gate
from esnode.powering.audit import PowerAudit
from esnode.powering.hardware import PowerHardware
from esnode.powering.heard import Heard
from esnode.powering.logs import PowerLogs
from esnode.powering.wishes import Wishes

log = structlog.get_logger("esnode.power")

ALARMS_MAX = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTerms:
    """What the operator of this machine chose."""

    settle_seconds: float
    priority: int = 1
    limit_watts: int | None = None
    static_reason: str = ""
    """Why this node never trades; empty where it may."""
    is_observing: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Means:
    """Everything that outlives one life of the cluster's part."""

    terms: PowerTerms
    gate: Gate
    logs: PowerLogs
    audit: PowerAudit
    clock: Callable[[], float]
    rng: random.Random
    read_boot_id: Callable[[], str]
    """Of the machine whose power it is: a simulated one starts anew by itself."""
    tell: Callable[[str], None] = lambda line: None
    """Told what operators should look at, one line each."""
    wishes: Wishes = field(default_factory=Wishes)
    heard: Heard = field(default_factory=Heard)
    counts: Counter[str] = field(default_factory=Counter)
    alarms: deque[str] = field(default_factory=lambda: deque(maxlen=ALARMS_MAX))

    def alarm(self, line: str) -> None:
        """Something that operators should look at; said once while it is remembered."""
        if line in self.alarms:
            return
        self.alarms.append(line)
        self.counts["alarms"] += 1
        log.warning("power_alarm", detail=line)
        self.audit.add("alarm", line=line)
        self.tell(line)


@dataclass(slots=True, eq=False)
class Hardwareless:
    """Why there is nothing to govern on this machine."""

    reason: str


MachineHardware = PowerHardware | Hardwareless
