"""The limited devices of this machine: what is in force, what may still show, what to write next.

Pure; `now` is handed in. Its own file because it keeps one promise for the core: a cap that is said
to be in force bounds all that the devices can draw together, also while limits move. So a device is
raised only as far as the highest limits of the last settle time of all devices leave room under
the cap: after a lowering of another it waits. Limits that fill a cap only in part count as the
whole cap. It must not know how devices are asked, nor who wants the cap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from esnode.control.arbiter import narrow
from esnode.control.foreign import SETTLE_SECONDS, Finding, ForeignWriters
from esnode.control.refusing import TRY_WATTS, RefusedRaises
from esnode.control.rest import MARGIN_RATIO, Rest
from esnode.control.settling import Settling
from esnode.control.split import (
    Chassis,
    NodePart,
    bound_watts,
    floor_watts,
    maximum_watts,
    split,
)
from esnode.control.supply import Efficiency
from esnode.readings.limits import (
    EnforcedLimit,
    Limit,
    LimitOutcome,
    LimitRange,
    LimitRefused,
)

EFFICIENCY = Efficiency(points=((0, 0.92),))
"""Of power supplies nobody said anything about: the worst of 80 PLUS Platinum at half load."""
REST_BASE_WATTS = 200
REST_PER_GPU_WATTS = 300
"""Fans, processors, memory and network of a server, for each GPU in it, until a meter tells or an
operator says. Source: an eight-GPU system of 10.2 kW with GPUs of 700 W, its fans at full speed,
draws 4.6 kW beside them; half of that without load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoad:
    """What one device does."""

    draw_watts: float | None
    is_capped: bool | None
    """Whether its limit holds it back; None where it does not say."""
    age_seconds: float | None = None
    """Of the draw; None where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """One device, for people."""

    range: LimitRange
    enforced_watts: int | None
    draw_watts: float | None
    set_by: str
    """``esnode``, ``other``, ``default``, or ``unknown`` where it does not say what it obeys."""
    is_given_up: bool
    is_refusing: bool
    """It takes no raise: what it cannot have goes to the others."""
    refusal: str


class Devices:
    """All limited devices of one machine."""

    def __init__(
        self, *, settle_seconds: float, rest_watts: int | None, efficiency: Efficiency = EFFICIENCY
    ) -> None:
        """Begin; `rest_watts` is an operator's figure for everything without a limit."""
        self.settle_seconds = settle_seconds
        self.efficiency = efficiency
        self._said_watts = rest_watts
        self._figure_watts = rest_watts or REST_BASE_WATTS
        self.rest = _begin_rest(self._figure_watts)
        self.foreign = ForeignWriters(settle_seconds=max(settle_seconds, SETTLE_SECONDS))
        self._ranges: dict[str, LimitRange] = {}
        self._limits: dict[str, EnforcedLimit] = {}
        self._peaks: dict[str, list[tuple[float, int]]] = {}
        self._loads: Mapping[str, DeviceLoad] = {}
        self._ours: dict[str, int] = {}
        self._refusals: dict[str, str] = {}
        self._raises = RefusedRaises()
        self.settling = Settling()
        self.cap_watts: int | None = None
        """What was last asked for, of the whole machine at its inlet."""
        self.is_raise_waiting = False
        """A device could be raised once another has settled."""

    # -- what is there ----------------------------------------------------------------------------

    def found(self, ranges: Iterable[LimitRange]) -> None:
        """These devices take limits."""
        is_first = not self._ranges
        self._ranges = {one.device: one for one in ranges}
        if is_first and self._said_watts is None:
            gpus = sum(one.kind == "gpu" for one in self._ranges.values())
            self._figure_watts = REST_BASE_WATTS + REST_PER_GPU_WATTS * gpus
            self.rest = _begin_rest(self._figure_watts)

    @property
    def is_any_settable(self) -> bool:
        """Whether this machine can hold a cap at all."""
        return any(part.is_settable for part in self.parts())

    @property
    def chassis(self) -> Chassis:
        """Everything without a limit, as it is known to be now."""
        said = 0 if self._said_watts is None else self._said_watts + self.rest.surplus_watts
        return Chassis(rest_watts=max(self.rest.watts, said), efficiency=self.efficiency)

    @property
    def lowest_watts(self) -> int:
        """The lowest cap that this machine can keep, also while fans and processors work hard."""
        return floor_watts(self.parts(), self._worst_chassis)

    @property
    def highest_watts(self) -> int:
        """What this machine can draw at most."""
        return maximum_watts(self.parts(), self._worst_chassis)

    @property
    def _worst_chassis(self) -> Chassis:
        chassis = self.chassis
        return replace(chassis, rest_watts=max(chassis.rest_watts, self._figure_watts))

    @property
    def in_force_watts(self) -> int | None:
        """The cap that bounds the draw by what the devices obey now; None while one is unknown."""
        bound = bound_watts(self.parts(), self.chassis)
        if bound is None or self.cap_watts is None:
            return bound
        return max(bound, self.cap_watts)

    def views(self) -> tuple[DeviceView, ...]:
        """The devices, for people."""
        return tuple(
            DeviceView(
                range=limits,
                enforced_watts=self._enforced(device),
                draw_watts=self._loads[device].draw_watts if device in self._loads else None,
                set_by=self._set_by(device),
                is_given_up=self.foreign.is_given_up(device),
                is_refusing=self._raises.is_refusing(device),
                refusal=self._refusals.get(device, ""),
            )
            for device, limits in self._ranges.items()
        )

    # -- what comes in ----------------------------------------------------------------------------

    def seen(self, limits: Iterable[EnforcedLimit], now: float) -> tuple[Finding, ...]:
        """Take in what the devices obey; what is new about other writers."""
        known = [one for one in limits if one.device in self._ranges]
        for one in known:
            self._note_peak(one.device, self._may_show(one.device), now)
            self._limits[one.device] = one
        return self.foreign.judge(known, now)

    def asked(self, limits: Iterable[Limit], now: float) -> None:
        """These are about to be written: what goes up may show from now on."""
        for limit in limits:
            self._note_peak(limit.device, limit.watts, now)
            self._note_peak(limit.device, self._may_show(limit.device), now)

    def answered(self, outcomes: Iterable[LimitOutcome], now: float) -> None:
        """What came of a write."""
        for outcome in outcomes:
            device, before = outcome.device, self._limits.get(outcome.device)
            shows = self._may_show(device)
            is_raise = shows is not None and outcome.asked_watts > shows
            if isinstance(outcome, LimitRefused):
                self._refusals[device] = outcome.reason
                if is_raise:
                    self._raises.refused(device, now)
                requested = None if before is None else before.requested_watts
            else:
                self._refusals.pop(device, None)
                is_lowering = shows is not None and outcome.asked_watts < shows
                if is_raise or is_lowering:
                    self.settling.limited(
                        device, outcome.asked_watts, is_lowering=is_lowering, now=now
                    )
                if is_raise:
                    self._raises.took(device)
                self._ours[device] = requested = outcome.asked_watts
                self.foreign.wrote(device, outcome.asked_watts, now)
            self._limits[device] = EnforcedLimit(
                device=device, enforced_watts=outcome.enforced_watts, requested_watts=requested
            )

    def loaded(self, loads: Mapping[str, DeviceLoad], now: float) -> None:
        """What the devices do."""
        self._loads = loads
        self.settling.drew(
            {
                device: (load.draw_watts, load.age_seconds)
                for device, load in loads.items()
                if load.draw_watts is not None and load.age_seconds is not None
            },
            now,
        )

    @property
    def devices_watts(self) -> float | None:
        """What all of them draw; None when one does not say."""
        draws = [
            load.draw_watts
            for device in self._ranges
            if (load := self._loads.get(device)) is not None and load.draw_watts is not None
        ]
        return sum(draws) if draws and len(draws) == len(self._ranges) else None

    # -- what to write ----------------------------------------------------------------------------

    def parts(self) -> tuple[NodePart, ...]:
        """The devices as the split sees them."""
        return tuple(map(self._part, self._ranges.values()))

    def plan(self, now: float) -> tuple[Limit, ...]:
        """What may be written now to bring the limits to the cap."""
        self.is_raise_waiting = False
        if self.cap_watts is None:
            return ()
        parts, chassis = self.parts(), self.chassis
        settable = [part for part in parts if part.is_settable]
        room = (
            self.efficiency.load_watts(self.cap_watts)
            - chassis.rest_watts
            - sum(part.range.maximum_watts for part in parts if not part.is_settable)
            - sum(self._peak(part.range.device, now) for part in settable)
        )
        wanted: list[Limit] = []
        for limit in split(self.cap_watts, parts, chassis):
            shows = self._may_show(limit.device)
            if (
                shows is not None
                and limit.watts > shows
                and self._raises.is_resting(limit.device, now)
            ):
                continue
            if shows is None or limit.watts < shows:
                wanted.append(limit)
            elif limit.watts == shows and limit.device not in self._ours:
                wanted.append(limit)  # of an earlier life, or of somebody else: ours from now on
            elif limit.watts > shows:
                more = max(0, limit.watts - self._peak(limit.device, now))
                if more > max(0, room):
                    self.is_raise_waiting = True
                    continue
                room -= more
                wanted.append(limit)
        return tuple(wanted)

    # -- machinery --------------------------------------------------------------------------------

    def _part(self, limits: LimitRange) -> NodePart:
        device = limits.device
        load = self._loads.get(device)
        is_locked = limits.kind == "cpu" and device in self._refusals
        demand = None if load is None or load.is_capped else load.draw_watts
        if self.foreign.is_given_up(device) or is_locked:
            found = max(limits.minimum_watts, self._enforced(device) or limits.maximum_watts)
            most = limits.maximum_watts if is_locked else max(found, self._peak_now(device))
            counted = replace(limits, maximum_watts=max(limits.minimum_watts, most))
            return NodePart(
                range=counted, demand_watts=demand, is_settable=False, enforced_watts=found
            )
        return NodePart(
            range=narrow(limits, self._ceiling_watts(device)),
            demand_watts=demand,
            is_settable=True,
            enforced_watts=self._may_show(device),
        )

    def _ceiling_watts(self, device: str) -> int | None:
        """What it may get at most: what somebody else, or its own refusal, leaves of its range."""
        ceilings = [self.foreign.ceiling_watts(device)]
        shows = self._may_show(device)
        if shows is not None and self._raises.is_refusing(device):
            ceilings.append(shows + TRY_WATTS)
        return min((one for one in ceilings if one is not None), default=None)

    def _enforced(self, device: str) -> int | None:
        limit = self._limits.get(device)
        return None if limit is None else limit.enforced_watts

    def _may_show(self, device: str) -> int | None:
        """The highest limit that the device obeys or is on its way to; None for unknown."""
        limit = self._limits.get(device)
        if limit is None or limit.enforced_watts is None:
            return None
        if self.foreign.ceiling_watts(device) is not None or limit.requested_watts is None:
            return limit.enforced_watts
        return max(limit.enforced_watts, limit.requested_watts)

    def _note_peak(self, device: str, watts: int | None, now: float) -> None:
        if watts is None:
            watts = self._ranges[device].maximum_watts
        kept = [one for one in self._peaks.get(device, []) if one[0] > now and one[1] > watts]
        self._peaks[device] = [*kept, (now + self.settle_seconds, watts)]

    def _peak(self, device: str, now: float) -> int:
        """The highest limit that may show in the draw."""
        shows = self._may_show(device)
        if shows is None:
            shows = self._ranges[device].maximum_watts
        return max([shows, *(watts for until, watts in self._peaks.get(device, []) if until > now)])

    def _peak_now(self, device: str) -> int:
        return self._may_show(device) or self._ranges[device].maximum_watts

    def _set_by(self, device: str) -> str:
        limit, limits = self._limits.get(device), self._ranges[device]
        if limit is None or limit.enforced_watts is None:
            return "unknown"
        is_others = self.foreign.is_given_up(device) or self.foreign.ceiling_watts(device)
        if not is_others and self._ours.get(device) in (
            limit.enforced_watts,
            limit.requested_watts,  # on its way there
        ):
            return "esnode"
        return "default" if limit.enforced_watts == limits.default_watts else "other"


def _begin_rest(figure_watts: int) -> Rest:
    """An estimate that begins at this figure, its margin included, so that it falls from there."""
    rest = Rest(int(figure_watts / (1.0 + MARGIN_RATIO)))
    rest.observe(draw_watts=0.0, devices_watts=0.0, cap_watts=None, efficiency=EFFICIENCY, now=0.0)
    return rest
