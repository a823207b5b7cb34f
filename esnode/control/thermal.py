"""Thermal care: what each GPU's heat asks of this node, look by look.

Pure; `now` is handed in. Its own file because it is one state machine, apart from what one look
says (`heat`) and from who writes limits: its ceilings are claims, and the one arbiter takes the
lowest of all. Rules, each with its figure in `Settings`:

1. A level is reached when three of the last four looks say so, or all of ten seconds; a device that
   says that heat holds its clocks back is severe at once. It is left when every sensor has been
   5 C below it for two minutes.
2. Warm: no new work. Hot: its ceiling goes down 5 % of its maximum every 10 s while it is still
   hot, from what it draws, down to the lowest that it takes. Severe: 20 % at once, again after
   30 s if that was not enough, and its work should go elsewhere. Critical: preemptible work stops.
3. The ceiling goes back up by 2 % every 30 s, and only while everything is well.
4. Each time a GPU stops being well counts as a flap and doubles a penalty, from one minute to
   thirty, in which it gets neither more power nor new work. Two hours without one and it is
   forgotten.
5. A sensor that is missing or old holds everything where it is: nothing is raised, nothing given
   back. That a device is slowed down is believed even then.

It must not know whether anybody acts on what it says.
Source: the power ledger's specification, 6.3, and the requirements of thermal care.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from esnode.control.heat import RISING, Level, Look, worst_of
from esnode.readings.limits import round_up

NEVER = float("-inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How patient thermal care is."""

    look_count: int = 4
    agreeing_count: int = 3
    """Of the last `look_count`, how many must agree: one wrong look changes nothing."""
    insistence_seconds: float = 10.0
    """Or all looks for so long: where looks are rare, four of them would take too long."""
    reset_celsius: float = 5.0
    reset_seconds: float = 120.0
    """Longer than a fan's cycle, and several time constants of a heat sink (20 to 30 s)."""
    stale_seconds: float = 15.0
    """Three intervals of collecting; older than that is unknown."""
    lower_ratio: float = 0.05
    lower_seconds: float = 10.0
    cut_ratio: float = 0.2
    cut_seconds: float = 30.0
    """Between two cuts: the first has shown by then whether it is enough."""
    raise_ratio: float = 0.02
    raise_seconds: float = 30.0
    penalty_min_seconds: float = 60.0
    penalty_max_seconds: float = 1800.0
    flaps_forgotten_seconds: float = 7200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """What one GPU's heat asks for."""

    gpu: str
    word: str
    """``ok``, ``warm``, ``hot``, ``critical``, or ``unknown`` when its sensors do not say."""
    is_taking_work: bool
    ceiling_watts: int | None
    """The most that it should be set to; ``None`` where its heat asks for no ceiling."""
    must_drain: bool
    """Its work should go elsewhere."""
    must_stop: bool
    """Preemptible work on it has to stop now, and somebody has to look."""
    is_degraded: bool
    """Its own protection slowed it down since it was last well."""
    lines: tuple[str, ...]
    """Why, for people: the evidence, and what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What has to outlive the process about one GPU; times as ages, since clocks begin anew."""

    gpu: str
    level: str
    ceiling_watts: int | None
    flap_count: int
    left_age_seconds: float
    penalty_seconds: float
    """What is left of it."""


@dataclass(slots=True, eq=False)
class _Gpu:
    """What is known of one GPU."""

    level: Level = Level.OK
    newest: Level = Level.OK
    """What the newest look says by itself."""
    look: Look | None = None
    core_at_seconds: float = NEVER
    levels: deque[tuple[float, Level]] = field(default_factory=deque)
    draws: deque[float] = field(default_factory=deque)
    above_since: dict[Level, float] = field(default_factory=dict)
    clear_since: dict[Level, float] = field(default_factory=dict)
    ceiling_watts: int | None = None
    lowered_at_seconds: float = NEVER
    cut_at_seconds: float = NEVER
    raised_at_seconds: float = NEVER
    flap_count: int = 0
    left_at_seconds: float = NEVER
    penalty_until_seconds: float = NEVER
    is_degraded: bool = False


class ThermalCare:
    """The care of one node's GPUs."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._gpus: dict[str, _Gpu] = {}

    def take(self, looks: Iterable[Look], now: float) -> tuple[Care, ...]:
        """Take in the newest looks (a look seen before counts once), and say what follows."""
        for look in looks:
            gpu = self._gpus.setdefault(look.gpu, _Gpu())
            if gpu.look is None or look.at_seconds > gpu.look.at_seconds:
                self._take_look(gpu, look)
        for gpu in self._gpus.values():
            self._act(gpu, now)
        return tuple(self._describe(uuid, gpu, now) for uuid, gpu in self._gpus.items())

    def keep(self, now: float) -> tuple[Kept, ...]:
        """What to hand to `begin` in the next life of this process."""
        return tuple(
            Kept(
                gpu=uuid,
                level=gpu.level.name.lower(),
                ceiling_watts=gpu.ceiling_watts,
                flap_count=gpu.flap_count,
                left_age_seconds=max(0.0, now - gpu.left_at_seconds),
                penalty_seconds=max(0.0, gpu.penalty_until_seconds - now),
            )
            for uuid, gpu in self._gpus.items()
            if gpu.flap_count or gpu.ceiling_watts is not None
        )

    def begin(self, kept: Iterable[Kept], now: float) -> None:
        """Go on where the process before this one was: a restart cools nothing."""
        for one in kept:
            gpu = self._gpus.setdefault(one.gpu, _Gpu())
            gpu.level = Level.__members__.get(one.level.upper(), Level.WARM)
            gpu.ceiling_watts = one.ceiling_watts
            gpu.flap_count = one.flap_count
            gpu.left_at_seconds = now - one.left_age_seconds
            gpu.penalty_until_seconds = now + one.penalty_seconds

    # -- what a look says -------------------------------------------------------------------------

    def _take_look(self, gpu: _Gpu, look: Look) -> None:
        gpu.look = look
        at = look.at_seconds
        if look.draw_watts is not None:
            gpu.draws.append(look.draw_watts)
            if len(gpu.draws) > self._settings.look_count:
                gpu.draws.popleft()
        if not look.has_core:
            if look.is_slowed_by_heat:
                gpu.newest = max(gpu.newest, Level.SEVERE)
                self._rise(gpu, Level.SEVERE, at)
            gpu.clear_since.clear()
            return
        if at - gpu.core_at_seconds > self._settings.stale_seconds:
            # Nobody saw what was in between: neither heat nor calm has lasted.
            gpu.levels.clear()
            gpu.above_since.clear()
            gpu.clear_since.clear()
        gpu.core_at_seconds = at
        worst = worst_of(look.warmths)
        gpu.newest = Level.OK if worst is None else worst.level
        self._remember(gpu, at)
        if look.is_slowed_by_heat:
            gpu.newest = max(gpu.newest, Level.SEVERE)
            gpu.clear_since.clear()
            self._rise(gpu, Level.SEVERE, at)
        self._rise(gpu, self._confirmed(gpu, at), at)
        self._fall(gpu, look, at)

    def _remember(self, gpu: _Gpu, at: float) -> None:
        gpu.levels.append((at, gpu.newest))
        if len(gpu.levels) > self._settings.look_count:
            gpu.levels.popleft()
        for level in RISING:
            if gpu.newest < level:
                gpu.above_since.pop(level, None)
            else:
                gpu.above_since.setdefault(level, at)

    def _confirmed(self, gpu: _Gpu, at: float) -> Level:
        """The highest level on which the last looks agree."""
        for level in reversed(RISING):
            agreeing = sum(seen >= level for _, seen in gpu.levels)
            since = gpu.above_since.get(level, at)
            if agreeing >= self._settings.agreeing_count:
                return level
            if at - since >= self._settings.insistence_seconds:
                return level
        return Level.OK

    def _rise(self, gpu: _Gpu, level: Level, at: float) -> None:
        if level <= gpu.level:
            return
        if gpu.level is Level.OK:
            if at - gpu.left_at_seconds > self._settings.flaps_forgotten_seconds:
                gpu.flap_count = 0
            gpu.flap_count += 1
            gpu.left_at_seconds = at
        gpu.level = level
        gpu.clear_since.clear()

    def _fall(self, gpu: _Gpu, look: Look, at: float) -> None:
        if look.is_slowed_by_heat:
            return
        lowest = Level.OK
        for level in RISING:
            is_clear = all(
                warmth.is_clear_of(level, reset_celsius=self._settings.reset_celsius)
                for warmth in look.warmths
            )
            if not is_clear:
                gpu.clear_since.pop(level, None)
            elif at - gpu.clear_since.setdefault(level, at) >= self._settings.reset_seconds:
                continue
            lowest = level
        if lowest >= gpu.level:
            return
        gpu.level = lowest
        if lowest is Level.OK:
            gpu.is_degraded = False
            gpu.penalty_until_seconds = at + self._penalty_seconds(gpu.flap_count)

    def _penalty_seconds(self, flap_count: int) -> float:
        doublings = min(max(0, flap_count - 1), 16)
        seconds = self._settings.penalty_min_seconds * 2.0**doublings
        return min(seconds, self._settings.penalty_max_seconds)

    # -- what follows -----------------------------------------------------------------------------

    def _act(self, gpu: _Gpu, now: float) -> None:
        look = gpu.look
        if look is None or now - look.at_seconds > self._settings.stale_seconds:
            return
        settings = self._settings
        if look.is_slowed_by_heat:
            gpu.is_degraded = True
        is_blind = not look.has_core
        if is_blind and not look.is_slowed_by_heat:
            return
        judged = min(gpu.level, gpu.newest)
        if judged >= Level.SEVERE and now - gpu.cut_at_seconds >= settings.cut_seconds:
            gpu.cut_at_seconds = now
            self._lower(gpu, look, settings.cut_ratio, now)
        elif judged >= Level.HOT and now - gpu.lowered_at_seconds >= settings.lower_seconds:
            self._lower(gpu, look, settings.lower_ratio, now)
        elif (
            not is_blind
            and gpu.level is Level.OK
            and now >= gpu.penalty_until_seconds
            and now - gpu.raised_at_seconds >= settings.raise_seconds
        ):
            self._raise(gpu, look, now)

    def _lower(self, gpu: _Gpu, look: Look, ratio: float, now: float) -> None:
        gpu.lowered_at_seconds = now
        most, least = look.maximum_watts, look.minimum_watts
        if most is None or least is None:
            return
        present = most if gpu.ceiling_watts is None else gpu.ceiling_watts
        draw = round_up(max(gpu.draws, default=None))
        if draw is not None:
            present = min(present, draw)  # a ceiling above the draw cools nothing
        lower = max(least, present - int(ratio * most))
        gpu.ceiling_watts = lower if gpu.ceiling_watts is None else min(gpu.ceiling_watts, lower)

    def _raise(self, gpu: _Gpu, look: Look, now: float) -> None:
        if gpu.ceiling_watts is None or look.maximum_watts is None:
            return
        gpu.raised_at_seconds = now
        step = max(1, int(self._settings.raise_ratio * look.maximum_watts))
        higher = gpu.ceiling_watts + step
        gpu.ceiling_watts = None if higher >= look.maximum_watts else higher

    # -- what is said -----------------------------------------------------------------------------

    def _describe(self, uuid: str, gpu: _Gpu, now: float) -> Care:
        was_ever_known = gpu.core_at_seconds > NEVER or gpu.flap_count > 0
        is_known = now - gpu.core_at_seconds <= self._settings.stale_seconds
        is_punished = now < gpu.penalty_until_seconds
        is_well = gpu.level is Level.OK and not is_punished
        return Care(
            gpu=uuid,
            word=gpu.level.word if is_known else "unknown",
            is_taking_work=is_well and (is_known or not was_ever_known),
            ceiling_watts=gpu.ceiling_watts,
            must_drain=gpu.level >= Level.SEVERE,
            must_stop=gpu.level is Level.CRITICAL and gpu.newest is Level.CRITICAL,
            is_degraded=gpu.is_degraded,
            lines=tuple(self._lines(gpu, now, is_known=is_known)),
        )

    def _lines(self, gpu: _Gpu, now: float, *, is_known: bool) -> list[str]:
        look = gpu.look
        lines: list[str] = []
        if look is not None and is_known:
            lines += [warmth.line for warmth in look.warmths]
        elif gpu.core_at_seconds > NEVER:
            age = now - gpu.core_at_seconds
            lines.append(f"its temperature is unknown for {age:.0f} s: nothing is raised")
        else:
            lines.append("says no temperature that could be read")
        if look is not None and look.is_slowed_by_heat:
            lines.append("slowed down by its own thermal protection")
        if gpu.ceiling_watts is not None:
            lines.append(f"held at {gpu.ceiling_watts} W or less")
        elif gpu.level >= Level.HOT:
            lines.append("its power cannot be limited")
        left = gpu.penalty_until_seconds - now
        if left > 0:
            lines.append(f"has left its limits {gpu.flap_count} times: on trial for {left:.0f} s")
        return lines
