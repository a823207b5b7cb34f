"""The power setter itself: guards what is written to the hardware, and keeps a journal of it.

Its own file because it is the whole of what needs privilege. Rules:

1. It acts on an order and on nothing else: it raises no limit by itself, restores none at its end,
   and has no default to go back to.
2. No limit is set outside a device's hardware range, nor outside the setter's own hard limits,
   which the agent cannot change.
3. In one order all that goes down is written before anything goes up, and nothing goes up while
   one that was to come down is not yet in force: so the sum of limits never passes through a value
   higher than both the old and the new. A device that comes down late makes the order's raises wait
   for the next order.
4. A write proves nothing: each is read back, and the reply holds what is enforced, not what was
   asked. Waiting for the hardware to settle, and trying again, are the caller's.
5. The journal is written before and after. Without it nothing is raised; a lowering goes ahead.
6. A device whose limit is unknown counts at its maximum, so that writing to it is a lowering.
7. A hung device delays an order by one deadline, once; the others are set meanwhile. What it was
   asked may still happen when it wakes: until it answers again its limit is unknown.

It must not know caps of a node, shares of a rack, or why an order is given.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from esnode.clock import unix_seconds
from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.drivers.limits.base import FoundDevices, LimitDevices
from esnode.readings.host import Absence
from esnode.readings.limits import (
    EnforcedLimit,
    Limit,
    LimitOutcome,
    LimitRange,
    LimitRefused,
    LimitWritten,
)
from esnode.setter.calls import DeviceCalls
from esnode.setter.entries import entry_after, entry_before
from esnode.setter.journal import Journal
from esnode.setter.messages import (
    DEVICES_MAX,
    LimitsRead,
    LimitsSet,
    ListRanges,
    RangesListed,
    ReadLimits,
    Refused,
    Reply,
    Request,
    SetLimits,
)

DEVICE_DEADLINE_SECONDS = 2.0
"""A hundred times what NVML takes for a call (10 to 20 ms, zeus issue 29)."""

DISCOVERY_DEADLINE_SECONDS = 10.0
"""Opening a driver that nobody keeps loaded takes seconds."""

JOURNAL_DEADLINE_SECONDS = 1.0
"""A disk that takes longer is as good as full: lowerings do not wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardLimit:
    """What one device is never set beyond, whatever is asked; ``None``: the hardware's range."""

    device: str
    minimum_watts: int | None = None
    maximum_watts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What came of one write."""

    refusal: str | None
    enforced_watts: int | None


class PowerSetter:
    """All limited devices of one machine. Blocking; safe to use from several threads."""

    def __init__(
        self,
        backends: Sequence[LimitDevices],
        journal: Journal,
        *,
        hard_limits: Iterable[HardLimit] = (),
        deadline_seconds: float = DEVICE_DEADLINE_SECONDS,
        wall_seconds: Callable[[], float] = unix_seconds,
    ) -> None:
        self._backends = tuple(backends)
        self._journal = journal
        self._hard = {limit.device: limit for limit in hard_limits}
        self._wall_seconds = wall_seconds
        self._device_calls = DeviceCalls(deadline_seconds)
        self._discovery_calls = DeviceCalls(max(deadline_seconds, DISCOVERY_DEADLINE_SECONDS))
        self._journal_calls = DeviceCalls(min(deadline_seconds, JOURNAL_DEADLINE_SECONDS))
        self._orders = count(1)
        self._turn = threading.Lock()
        self._homes: dict[str, LimitDevices] = {}
        self._ranges: dict[str, LimitRange] = {}

    def ask(self, request: Request) -> Reply:
        """Do what is asked. Nothing is raised: what fails is in the reply."""
        match request:
            case ListRanges():
                return self._list_ranges()
            case ReadLimits():
                return self._read_limits()
            case SetLimits():
                return self._set_limits(request)

    def _list_ranges(self) -> RangesListed:
        absent = self._discover()
        with self._turn:
            answers = self._device_calls.run(
                {device: partial(home.limit_range, device) for device, home in self._homes.items()}
            )
            for device, answer in answers.items():
                if isinstance(answer, LimitRange):
                    answer = self._tighten(answer)
                if isinstance(answer, LimitRange):
                    self._ranges[device] = answer
                    continue
                if isinstance(answer, Absence):
                    self._ranges.pop(device, None)
                # A device that did not answer keeps the range that it had.
                absent.append(_absence(f"limit:{device}", answer))
            return RangesListed(ranges=tuple(self._ranges.values()), absent=tuple(absent))

    def _discover(self) -> list[Absence]:
        """Look for devices; one that was found once stays known, answering or not."""
        answers = self._discovery_calls.run(
            {f"{backend.name} ({n})": backend.discover for n, backend in enumerate(self._backends)}
        )
        absent: list[Absence] = []
        with self._turn:
            for backend, answer in zip(self._backends, answers.values(), strict=True):
                if isinstance(answer, FoundDevices):
                    absent.extend(answer.absent)
                    self._homes |= dict.fromkeys(answer.devices, backend)
                else:
                    absent.append(_absence(f"limits:{backend.name}", answer))
        return absent

    def _tighten(self, limits: LimitRange) -> LimitRange | Absence:
        """The range that the hard limits leave."""
        hard = self._hard.get(limits.device)
        if hard is None:
            return limits
        low = max(limits.minimum_watts, hard.minimum_watts or 0)
        high = limits.maximum_watts
        if hard.maximum_watts is not None:
            high = min(high, hard.maximum_watts)
        if low > high:
            reason = (
                f"the setter's hard limits leave nothing of {limits.minimum_watts} to"
                f" {limits.maximum_watts} W"
            )
            return Absence(what=f"limit:{limits.device}", reason=reason)
        return replace(limits, minimum_watts=low, maximum_watts=high)

    def _read_limits(self) -> LimitsRead:
        absent = [] if self._homes else self._discover()
        with self._turn:
            limits = self._read_all(self._homes)
        known: list[EnforcedLimit] = []
        for device, answer in limits.items():
            if isinstance(answer, EnforcedLimit):
                known.append(answer)
            else:
                known.append(_unknown(device))
                absent.append(_absence(f"limit:{device}", answer))
        return LimitsRead(limits=tuple(known), absent=tuple(absent))

    def _read_all(self, devices: Iterable[str]) -> dict[str, EnforcedLimit | Exception]:
        return self._device_calls.run(
            {device: partial(self._homes[device].enforced, device) for device in devices}
        )

    def _set_limits(self, order: SetLimits) -> Reply:
        devices = [limit.device for limit in order.limits]
        if len(devices) > DEVICES_MAX or len(set(devices)) < len(devices):
            return Refused(reason=f"an order names each device once, and at most {DEVICES_MAX}")
        if not self._ranges:
            self._list_ranges()
        with self._turn:
            outcomes: dict[str, LimitOutcome] = {}
            allowed = [limit for limit in order.limits if self._is_allowed(limit, outcomes)]
            befores = {
                device: answer if isinstance(answer, EnforcedLimit) else _unknown(device)
                for device, answer in self._read_all(limit.device for limit in allowed).items()
            }
            lowerings: list[Limit] = []
            raises: list[Limit] = []
            for limit in allowed:
                before = befores[limit.device]
                if before.enforced_watts == before.requested_watts == limit.watts:
                    outcomes[limit.device] = _written(limit, before, limit.watts)
                elif _is_raise(limit, before):
                    raises.append(limit)
                else:
                    lowerings.append(limit)
            fault = self._change(order, lowerings, raises, befores, outcomes)
        return LimitsSet(
            outcomes=tuple(outcomes[device] for device in devices), journal_fault=fault
        )

    def _is_allowed(self, limit: Limit, outcomes: dict[str, LimitOutcome]) -> bool:
        """Whether a limit is within its device's range; the refusal of one that is not."""
        limits = self._ranges.get(limit.device)
        if limits is None:
            reason = f"no range is known of a device {limit.device!r}: it takes no limit here"
        elif not limits.minimum_watts <= limit.watts <= limits.maximum_watts:
            reason = (
                f"{limit.watts} W is outside {limits.minimum_watts} to {limits.maximum_watts} W"
            )
        else:
            return True
        outcomes[limit.device] = _refused(limit, None, reason)
        return False

    def _change(
        self,
        order: SetLimits,
        lowerings: Sequence[Limit],
        raises: Sequence[Limit],
        befores: Mapping[str, EnforcedLimit],
        outcomes: dict[str, LimitOutcome],
    ) -> str | None:
        """Write what is to be written, lowest first; why the journal is not whole, if it is not."""
        number = next(self._orders)
        fault = None
        if lowerings or raises:
            fault = self._note(
                entry_before(number, self._wall_seconds(), order, (*lowerings, *raises), befores)
            )
        elif all(isinstance(outcome, LimitWritten) for outcome in outcomes.values()):
            return None
        self._write(lowerings, befores, outcomes)
        if fault is not None:
            why_not: str | None = f"nothing is raised without a journal: {fault}"
        else:
            why_not = _find_late(lowerings, outcomes)
        if why_not is None:
            self._write(raises, befores, outcomes)
        else:
            for limit in raises:
                enforced = befores[limit.device].enforced_watts
                outcomes[limit.device] = _refused(limit, enforced, why_not)
        after = entry_after(number, self._wall_seconds(), order, tuple(outcomes.values()))
        return self._note(after) or fault

    def _write(
        self,
        limits: Iterable[Limit],
        befores: Mapping[str, EnforcedLimit],
        outcomes: dict[str, LimitOutcome],
    ) -> None:
        """Set limits side by side and read each back."""
        by_device = {limit.device: limit for limit in limits}
        answers = self._device_calls.run(
            {
                device: partial(_set_and_read, self._homes[device], limit)
                for device, limit in by_device.items()
            }
        )
        for device, answer in answers.items():
            limit = by_device[device]
            if isinstance(answer, Exception):
                outcomes[device] = _refused(limit, None, _word(answer))
            elif answer.refusal is not None:
                outcomes[device] = _refused(limit, answer.enforced_watts, answer.refusal)
            else:
                outcomes[device] = _written(limit, befores[device], answer.enforced_watts)

    def _note(self, entry: Mapping[str, object]) -> str | None:
        """Write one line of the journal; why not, if it could not be."""
        answer = self._journal_calls.run({"journal": partial(self._journal.append, entry)})
        error = answer["journal"]
        return None if error is None else _word(error)


def _set_and_read(home: LimitDevices, limit: Limit) -> _Change:
    refusal = None
    try:
        home.set_limit(limit.device, limit.watts)
    except PowerLimitRefused as error:
        refusal = str(error)
    except DeviceFault as error:
        refusal = f"whether it was set is unknown: {error.reason}"
    try:
        enforced = home.enforced(limit.device).enforced_watts
    except DeviceFault:
        enforced = None
    return _Change(refusal=refusal, enforced_watts=enforced)


def _is_raise(limit: Limit, before: EnforcedLimit) -> bool:
    """Whether this goes above what is in force, or above what the device is on its way down to."""
    known = [
        watts for watts in (before.enforced_watts, before.requested_watts) if watts is not None
    ]
    return bool(known) and limit.watts > min(known)


def _find_late(lowerings: Iterable[Limit], outcomes: Mapping[str, LimitOutcome]) -> str | None:
    """Why raises must wait; ``None`` once all that was to come down has."""
    for limit in lowerings:
        enforced = outcomes[limit.device].enforced_watts
        if enforced is None:
            return f"waits: what {limit.device} obeys is unknown"
        if enforced > limit.watts:
            return f"waits: {limit.device} still obeys {enforced} W, not {limit.watts} W"
    return None


def _written(limit: Limit, before: EnforcedLimit, enforced_watts: int | None) -> LimitWritten:
    return LimitWritten(
        device=limit.device,
        asked_watts=limit.watts,
        before_watts=before.enforced_watts,
        enforced_watts=enforced_watts,
    )


def _refused(limit: Limit, enforced_watts: int | None, reason: str) -> LimitRefused:
    return LimitRefused(
        device=limit.device, asked_watts=limit.watts, enforced_watts=enforced_watts, reason=reason
    )


def _unknown(device: str) -> EnforcedLimit:
    return EnforcedLimit(device=device, enforced_watts=None, requested_watts=None)


def _absence(what: str, answer: Absence | Exception) -> Absence:
    return answer if isinstance(answer, Absence) else Absence(what=what, reason=_word(answer))


def _word(error: Exception) -> str:
    """What a call raised, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
