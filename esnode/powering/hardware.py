"""From a cap to the devices and back, over the power setter.

Its own file because every call here may hang: each is made in a thread, none is waited for past the
setter's own deadlines, and one is made at a time. A lowering is over when the devices say that they
obey it, or when they have had time enough; a raise is over at once, as the cap then bounds what the
devices do on their way. It must not know shares.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog
import trio

from esnode.control.foreign import Finding, GivenUp, LowerAgain
from esnode.powering.devices import Devices
from esnode.setter import (
    LimitsRead,
    LimitsSet,
    ListRanges,
    RangesListed,
    ReadLimits,
    Refused,
    Reply,
    Request,
    SetLimits,
    SetterGone,
)
from esnode.setter.remote import Setter

log = structlog.get_logger("esnode.power")

POLL_SECONDS = 0.1
OBEY_SECONDS_MIN = 2.0
"""For a device to take up a lower limit, however short its settle time is said to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something about the devices that people should know; an alarm, or only for the audit."""

    line: str
    is_alarm: bool


class PowerHardware:
    """The caps of one machine."""

    def __init__(
        self,
        setter: Setter,
        devices: Devices,
        *,
        clock: Callable[[], float],
        tell: Callable[[Told], None],
    ) -> None:
        self.devices = devices
        self._setter = setter
        self._clock = clock
        self._tell = tell
        self._told: set[str] = set()
        self.trouble: str | None = None
        """Why the setter cannot be asked, while that is so."""
        self.journal_fault: str | None = None

    async def discover(self) -> tuple[str, ...]:
        """Look for devices; why some, or all, take no limit."""
        reply = await self._ask(ListRanges())
        if isinstance(reply, RangesListed):
            self.devices.found(reply.ranges)
            await self.look()
            return tuple(f"{one.what}: {one.reason}" for one in reply.absent)
        return () if self.trouble is None else (self.trouble,)

    async def look(self) -> int | None:
        """Read what the devices obey; the cap that is in force by that."""
        reply = await self._ask(ReadLimits())
        if not isinstance(reply, LimitsRead):
            return None
        findings = self.devices.seen(reply.limits, self._clock())
        for finding in findings:
            self._hear(finding)
        if any(isinstance(one, LowerAgain) for one in findings):
            await self.arrange("an unknown writer raised a limit")
        return self.devices.in_force_watts

    async def set_cap(
        self,
        cap_watts: int,
        reason: str,
        seen: Callable[[int | None, float], None],
        *,
        is_overtaken: Callable[[], bool] = lambda: False,
    ) -> int | None:
        """Bring the machine to a cap at its inlet; what is in force then, None for unknown.

        `seen` is told of each look while the devices are on their way, and when it began. Nothing
        is waited for once a lower cap is wanted (`is_overtaken`): that one goes out at once.
        """
        self.devices.cap_watts = cap_watts
        await self._order(reason)
        end = self._clock() + max(OBEY_SECONDS_MIN, self.devices.settle_seconds)
        while not (self._is_obeyed(cap_watts) or is_overtaken() or self._clock() >= end):
            await trio.sleep(POLL_SECONDS)
            begun = self._clock()
            seen(await self.look(), begun)
        return None if self.trouble is not None else self.devices.in_force_watts

    async def arrange(self, reason: str) -> None:
        """Divide the cap anew among the devices, as their work has changed."""
        await self._order(reason)

    def _is_obeyed(self, cap_watts: int) -> bool:
        in_force = self.devices.in_force_watts
        return in_force is not None and in_force <= cap_watts

    async def _order(self, reason: str) -> None:
        limits = self.devices.plan(self._clock())
        if not limits:
            return
        self.devices.asked(limits, self._clock())
        reply = await self._ask(SetLimits(limits=limits, reason=reason, source="rack"))
        if isinstance(reply, LimitsSet):
            self.devices.answered(reply.outcomes, self._clock())
            if reply.journal_fault is not None and self.journal_fault is None:
                self._tell(Told(line=f"power setter: {reply.journal_fault}", is_alarm=True))
            self.journal_fault = reply.journal_fault

    async def _ask(self, request: Request) -> Reply | None:
        try:
            reply = await trio.to_thread.run_sync(self._setter.ask, request, abandon_on_cancel=True)
        except SetterGone as error:
            self._note_trouble(str(error))
            return None
        self._note_trouble(reply.reason if isinstance(reply, Refused) else None)
        return reply

    def _note_trouble(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self.trouble:
            self._tell(Told(line=trouble, is_alarm=True))
        self.trouble = trouble

    def _hear(self, finding: Finding) -> None:
        line = f"{finding.device}: {finding.reason}"
        if line not in self._told:
            self._told.add(line)
            self._tell(Told(line=line, is_alarm=isinstance(finding, GivenUp)))
