"""A power setter over devices in memory, with short deadlines."""

import json
from pathlib import Path

from esnode.readings.limits import Limit, LimitRefused
from esnode.setter import (
    HardLimit,
    Journal,
    LimitsRead,
    LimitsSet,
    ListRanges,
    PowerSetter,
    RangesListed,
    ReadLimits,
    SetLimits,
)
from tests.limit_devices import MemoryDevice, MemoryDevices

DEADLINE_SECONDS = 0.2


class SetterBench:
    """A setter and what it sets."""

    def __init__(
        self,
        folder: Path,
        *hard_limits: HardLimit,
        bytes_max: int = 1 << 20,
        **devices: MemoryDevice,
    ) -> None:
        self.devices = MemoryDevices(devices)
        self.journal = Journal(folder, bytes_max=bytes_max)
        self.setter = PowerSetter(
            [self.devices],
            self.journal,
            hard_limits=hard_limits,
            deadline_seconds=DEADLINE_SECONDS,
            wall_seconds=lambda: 1_800_000_000.0,
        )

    def order(self, **watts: int) -> LimitsSet:
        limits = tuple(Limit(device=device, watts=one) for device, one in watts.items())
        reply = self.setter.ask(SetLimits(limits=limits, reason="a test", source="rack"))
        assert isinstance(reply, LimitsSet)
        return reply

    def read(self) -> LimitsRead:
        reply = self.setter.ask(ReadLimits())
        assert isinstance(reply, LimitsRead)
        return reply

    def ranges(self) -> RangesListed:
        reply = self.setter.ask(ListRanges())
        assert isinstance(reply, RangesListed)
        return reply

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.journal.path.read_text().splitlines()]


def at(watts: int) -> MemoryDevice:
    return MemoryDevice(enforced_watts=watts, requested_watts=watts)


def refusal(reply: LimitsSet, place: int = 0) -> LimitRefused:
    outcome = reply.outcomes[place]
    assert isinstance(outcome, LimitRefused)
    return outcome
