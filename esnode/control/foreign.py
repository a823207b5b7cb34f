"""Limits that somebody else set: nvidia-smi, a vendor's service, the baseboard controller.

Pure; `now` is handed in. Apart from the arbiter, which is about our own claims. Rules:

1. A lower limit than ours is respected: it becomes the device's ceiling and is told once. Set
   in-band (the device says that somebody asked for it), it stays until `release`, an operator's
   word: we would undo what a person did. Out-of-band, the hardware itself takes the lower of the
   two, so the ceiling is forgotten after some minutes without it showing, and then tried again.
2. A higher limit than ours is lowered again, at most three times; then the device is given up: an
   alarm, once, and it counts at the value that is found there.
3. Ten minutes of peace (nothing found above ours) and the count starts anew.
4. Nothing is judged while the device may still be on its way to what we wrote (`settle_seconds`),
   nor while its limit is unknown.

A driver that was loaded anew is back at its default and looks like 2; that is how it is treated.
It must not know who the writer is: the hardware does not tell.
Source: the power ledger's specification, 4.11, and the design's section on rack power.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from esnode.readings.limits import EnforcedLimit

LOWERINGS_MAX = 3
PEACE_SECONDS = 600.0
SETTLE_SECONDS = 2.0
"""The SETTLE of a machine that was not calibrated yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerRespected:
    """Somebody holds the device below what we set; it stays there."""

    device: str
    ours_watts: int
    found_watts: int
    is_out_of_band: bool
    """The device still knows our request: the other limiter is not the driver's."""

    @property
    def reason(self) -> str:
        """One line for the journal."""
        how = "out-of-band" if self.is_out_of_band else "by an unknown writer"
        return f"held at {self.found_watts} W {how}, below our {self.ours_watts} W: respected"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerAgain:
    """Somebody raised the device above what we set: write ours again."""

    device: str
    watts: int
    found_watts: int
    attempt_count: int

    @property
    def reason(self) -> str:
        """One line for the journal."""
        return (
            f"an unknown writer set {self.found_watts} W over our {self.watts} W:"
            f" lowered again ({self.attempt_count} of {LOWERINGS_MAX})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Somebody goes on raising the device: it counts at what is found, and an operator must look.

    For a split, such a device is a part that is not settable, with the found watts as its maximum.
    """

    device: str
    ours_watts: int
    found_watts: int

    @property
    def reason(self) -> str:
        """One line for the alarm."""
        return (
            f"an unknown writer set {self.found_watts} W over our {self.ours_watts} W again after"
            f" {LOWERINGS_MAX} lowerings: find and stop it; the device counts at"
            f" {self.found_watts} W"
        )


Finding = LowerRespected | LowerAgain | GivenUp


@dataclass(slots=True, eq=False)
class _Watch:
    """What is known of one device."""

    ours_watts: int
    quiet_until_seconds: float
    attempt_count: int = 0
    disturbed_at_seconds: float | None = None
    is_given_up: bool = False
    ceiling_watts: int | None = None
    is_ceiling_out_of_band: bool = False
    ceiling_seen_seconds: float = 0.0


class ForeignWriters:
    """Tells of each device whether what is in force is ours."""

    def __init__(self, *, settle_seconds: float = SETTLE_SECONDS) -> None:
        self._settle_seconds = settle_seconds
        self._watches: dict[str, _Watch] = {}

    def wrote(self, device: str, watts: int, now: float) -> None:
        """Remember that the device took a limit of ours."""
        quiet_until = now + self._settle_seconds
        watch = self._watches.get(device)
        if watch is None:
            self._watches[device] = _Watch(watts, quiet_until)
        else:
            watch.ours_watts = watts
            watch.quiet_until_seconds = quiet_until

    def judge(self, limits: Iterable[EnforcedLimit], now: float) -> tuple[Finding, ...]:
        """What is new about these devices; the caller acts on it and journals its `reason`."""
        findings: list[Finding] = []
        for limit in limits:
            watch = self._watches.get(limit.device)
            if watch is None or limit.enforced_watts is None or now < watch.quiet_until_seconds:
                continue
            if limit.enforced_watts > watch.ours_watts:
                finding = self._judge_higher(watch, limit.device, limit.enforced_watts, now)
            else:
                finding = _judge_lower(watch, limit, limit.enforced_watts, now)
                _calm_down(watch, now)
            if finding is not None:
                findings.append(finding)
        return tuple(findings)

    def ceiling_watts(self, device: str) -> int | None:
        """The lower limit of somebody else's that is respected; ``None`` where there is none."""
        watch = self._watches.get(device)
        return None if watch is None else watch.ceiling_watts

    def is_given_up(self, device: str) -> bool:
        """Whether somebody keeps the device above what we set, and we no longer write to it."""
        watch = self._watches.get(device)
        return watch is not None and watch.is_given_up

    def release(self, device: str) -> None:
        """An operator's word: what somebody else did to this device no longer counts."""
        watch = self._watches.get(device)
        if watch is not None:
            watch.ceiling_watts = None
            _forget_attempts(watch)

    def _judge_higher(
        self, watch: _Watch, device: str, found_watts: int, now: float
    ) -> Finding | None:
        watch.ceiling_watts = None
        watch.disturbed_at_seconds = now
        if watch.is_given_up:
            return None
        if watch.attempt_count >= LOWERINGS_MAX:
            watch.is_given_up = True
            return GivenUp(device=device, ours_watts=watch.ours_watts, found_watts=found_watts)
        watch.attempt_count += 1
        # Until the write that follows is made and has settled, the same sight is no new one.
        watch.quiet_until_seconds = now + self._settle_seconds
        return LowerAgain(
            device=device,
            watts=watch.ours_watts,
            found_watts=found_watts,
            attempt_count=watch.attempt_count,
        )


def _judge_lower(
    watch: _Watch, limit: EnforcedLimit, found_watts: int, now: float
) -> Finding | None:
    if found_watts == watch.ours_watts:
        is_old = now - watch.ceiling_seen_seconds >= PEACE_SECONDS
        if watch.ceiling_watts is not None and (
            found_watts > watch.ceiling_watts or (watch.is_ceiling_out_of_band and is_old)
        ):
            watch.ceiling_watts = None
        return None
    is_out_of_band = limit.requested_watts == watch.ours_watts
    is_known = watch.ceiling_watts == found_watts
    watch.ceiling_watts = found_watts
    watch.is_ceiling_out_of_band = is_out_of_band
    watch.ceiling_seen_seconds = now
    if is_known:
        return None
    return LowerRespected(
        device=limit.device,
        ours_watts=watch.ours_watts,
        found_watts=found_watts,
        is_out_of_band=is_out_of_band,
    )


def _calm_down(watch: _Watch, now: float) -> None:
    disturbed = watch.disturbed_at_seconds
    if disturbed is not None and now - disturbed >= PEACE_SECONDS:
        _forget_attempts(watch)


def _forget_attempts(watch: _Watch) -> None:
    watch.attempt_count = 0
    watch.is_given_up = False
    watch.disturbed_at_seconds = None
