"""The cap of one node on its way into hardware: what is wanted, what is in force, what may show.

Its own file because "the cap was lowered" is true only after four things: the write was accepted,
the read-back says so, the hardware had time to settle, and a look that began after that still says
so. Until then the older, higher cap bounds the draw. What was seen holds for a second: a process
that was halted, or whose look hangs, knows nothing. The ledger asks `bound_watts`; nothing else
decides whether watts may be given away. It must not know devices: a cap is one number for the node,
above the floor of its slot.
"""

from dataclasses import dataclass
from typing import TypeAlias

SETTLE_SECONDS = 2.0
"""From a successful write to the moment when the hardware keeps it, until it was measured here."""
TRIES_MAX = 4
"""Writes that do not lower, one after another, before the hardware counts as refusing."""
RETRY_SECONDS = 0.3
RETRY_SECONDS_MAX = 5.0
LOOK_SECONDS_MAX = 1.5
"""For so long after it began a look says what is in force; looks come several times a second."""
RAISE_WATTS_MIN = 5
"""A raise of less is not worth a write; a lowering always is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCap:
    """Set the node's cap, this much above its floor; then say `written`."""

    watts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOpened:
    """Work may be started: the cap is set and has settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateClosed:
    """No work may be started: it is not known that the draw is bounded as it has to be."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareRefused:
    """The hardware does not take a lower cap."""

    wanted_watts: int
    in_force_watts: int | None


Effect: TypeAlias = WriteCap | GateOpened | GateClosed | HardwareRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorView:
    """The cap at one instant."""

    wanted_watts: int | None
    in_force_watts: int | None
    bound_watts: int | None
    is_gate_open: bool
    is_refusing: bool
    is_settled: bool


class Actuator:
    """Brings one node's cap to where it is wanted, and knows what bounds the draw meanwhile."""

    def __init__(
        self,
        *,
        maximum_watts: int,
        is_gate_open: bool,
        now: float,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        """Begin a life: until a settle time has passed, any cap may have been in force."""
        self.settle_seconds = settle_seconds
        self._maximum_watts = maximum_watts
        self._is_gate_open = is_gate_open
        self._wanted_watts: int | None = None
        self._in_force_watts: int | None = None
        self._writing_watts: int | None = None
        self._past: list[tuple[float, int]] = [(now + settle_seconds, maximum_watts)]
        """Caps that may still show in the draw, and until when: a look after that ends it."""
        self._looked_seconds = now - LOOK_SECONDS_MAX
        """When the last look that said something began."""
        self._confirmed_watts: int | None = None
        """The last cap that was asked for and read back as no more than that."""
        self._advanced_seconds = now
        self._failures_count = 0
        self._retry_seconds = RETRY_SECONDS
        self._due_seconds: float | None = None
        self.is_refusing = False

    # -- verbs ------------------------------------------------------------------------------------

    def want(self, watts: int, now: float) -> list[Effect]:
        """The cap that should be in force: the lowest that anybody asks for.

        Never more than the hardware can draw.
        """
        watts = min(watts, self._maximum_watts)
        if self._wanted_watts is not None and watts < self._wanted_watts:
            self._due_seconds = None  # a lowering waits for no retry
        self._wanted_watts = watts
        return self.advance(now)

    def written(self, in_force_watts: int | None, now: float) -> list[Effect]:
        """The write has ended; what the read-back says, None where it says nothing."""
        asked = self._writing_watts
        self._writing_watts = None
        if asked is not None and in_force_watts is not None and in_force_watts <= asked:
            self._confirmed_watts = asked
        self._note(in_force_watts, asked, begun=now, now=now)
        wanted = self._wanted_watts
        if in_force_watts is not None and wanted is not None and in_force_watts <= wanted:
            self._failures_count = 0
            self.is_refusing = False
            is_short_of_asked = asked is not None and asked - in_force_watts >= RAISE_WATTS_MIN
            self._wait(now, is_failed=is_short_of_asked)
        elif asked is not None and self.is_lower_wanted(asked):
            self._wait(now, is_failed=False)  # it was overtaken, and had no time to be obeyed
        elif wanted is not None:
            self._failures_count += 1
            self._wait(now, is_failed=self._failures_count >= TRIES_MAX)
        effects: list[Effect] = []
        if self._failures_count == TRIES_MAX and wanted is not None:
            self.is_refusing = True
            effects.append(HardwareRefused(wanted_watts=wanted, in_force_watts=in_force_watts))
        return effects + self.advance(now)

    def observed(
        self, in_force_watts: int | None, now: float, *, begun: float | None = None
    ) -> list[Effect]:
        """What is in force by a look at the hardware; somebody else may have changed it.

        `begun` is when the look began, where that is not just now. A look that says nothing (None)
        is none.
        """
        if self._writing_watts is not None:
            self._vouch(in_force_watts, self._writing_watts, now if begun is None else begun)
            return self.advance(now)
        self._note(in_force_watts, None, begun=now if begun is None else begun, now=now)
        return self.advance(now)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed: write what is wanted, open or close the gate."""
        self._advanced_seconds = now
        self._past = [one for one in self._past if one[0] > self._looked_seconds]
        effects: list[Effect] = []
        if self._should_write(now):
            assert self._wanted_watts is not None
            self._writing_watts = self._wanted_watts
            self._due_seconds = None
            effects.append(WriteCap(watts=self._wanted_watts))
        return effects + self._move_gate(now)

    def deadline(self) -> float | None:
        """When `advance` is wanted, or a look."""
        times = [until for until, _ in self._past]
        if self._in_force_watts is not None:
            times.append(self._looked_seconds + LOOK_SECONDS_MAX)
        times = [one for one in times if one > self._advanced_seconds]
        if self._due_seconds is not None and self._writing_watts is None:
            times.append(self._due_seconds)  # a retry
        return min(times, default=None)

    def view(self, now: float) -> ActuatorView:
        """The cap now."""
        return ActuatorView(
            wanted_watts=self._wanted_watts,
            in_force_watts=self._in_force_watts if self._is_seen(now) else None,
            bound_watts=self.bound_watts(now),
            is_gate_open=self._is_gate_open,
            is_refusing=self.is_refusing,
            is_settled=all(until <= self._looked_seconds for until, _ in self._past),
        )

    def bound_watts(self, now: float) -> int | None:
        """The highest cap that may still show in the draw; None while the hardware is unknown."""
        if self._in_force_watts is None or not self._is_seen(now):
            return None
        showing = [watts for until, watts in self._past if until > self._looked_seconds]
        writing = [] if self._writing_watts is None else [self._writing_watts]
        return max([self._in_force_watts, *showing, *writing])

    def is_lower_wanted(self, watts: int) -> bool:
        """Whether a write of so much is overtaken: a lower cap is wanted by now."""
        return self._wanted_watts is not None and self._wanted_watts < watts

    # -- machinery --------------------------------------------------------------------------------

    def _wait(self, now: float, *, is_failed: bool) -> None:
        """When the next write may come: at once, or later and later while nothing comes of it."""
        if not is_failed:
            self._due_seconds, self._retry_seconds = now, RETRY_SECONDS
            return
        self._due_seconds = now + self._retry_seconds
        self._retry_seconds = min(RETRY_SECONDS_MAX, 2 * self._retry_seconds)

    def _is_seen(self, now: float) -> bool:
        """Whether what was seen last still says something."""
        return now - self._looked_seconds <= LOOK_SECONDS_MAX

    def _vouch(self, seen_watts: int | None, writing_watts: int, begun: float) -> None:
        """A look while a write goes on: its own read-back comes later, and says what is in force.

        Waiting until a lower cap is obeyed takes longer than a look is good for. A look that finds
        nothing above what bounds the draw anyway keeps that known; any other says nothing.
        """
        known = self._in_force_watts
        if seen_watts is None or known is None or not self._is_seen(begun):
            return
        if seen_watts <= max(known, writing_watts):
            self._looked_seconds = max(self._looked_seconds, begun)

    def _note(
        self, in_force_watts: int | None, asked: int | None, *, begun: float, now: float
    ) -> None:
        """Remember what is in force, and for how long the one before may show.

        Also the one that was asked for: a read-back may come before a late raise does. After a
        time in which nothing was seen anything may have been in force until just now.
        """
        until = now + self.settle_seconds
        before = self._in_force_watts
        if in_force_watts is None:
            if asked is not None:
                self._past.append((until, asked))
            return
        if before is None or not self._is_seen(begun):
            before = self._maximum_watts
        self._past += [
            (until, watts)
            for watts in (before, asked)
            if watts is not None and watts > in_force_watts
        ]
        self._in_force_watts = in_force_watts
        self._looked_seconds = max(self._looked_seconds, begun)

    def _should_write(self, now: float) -> bool:
        wanted = self._wanted_watts
        in_force = self._in_force_watts if self._is_seen(now) else None
        if wanted is None or self._writing_watts is not None:
            return False
        if self._due_seconds is not None and now < self._due_seconds:
            return False
        if in_force is None or in_force > wanted:
            return True
        if wanted - in_force >= RAISE_WATTS_MIN:
            return True
        self._due_seconds = None
        return False

    def _move_gate(self, now: float) -> list[Effect]:
        bound, wanted = self.bound_watts(now), self._wanted_watts
        if wanted is None:
            return []
        is_low = bound is not None and bound <= wanted
        if not self._is_gate_open and is_low:
            self._is_gate_open = True
            return [GateOpened()]
        reason = self._why_shut(bound)
        if is_low or not self._is_gate_open or not reason:
            return []
        self._is_gate_open = False
        return [GateClosed(reason=reason)]

    def _why_shut(self, bound: int | None) -> str:
        """Why no more work may be started while the bound is above what is wanted."""
        if bound is None:
            return "what cap is in force cannot be read"
        if self.is_refusing:
            return "the hardware does not take a lower cap"
        in_force, confirmed = self._in_force_watts, self._confirmed_watts
        if in_force is not None and confirmed is not None and in_force > confirmed:
            return "the cap that was set is not in force any more"
        return ""
