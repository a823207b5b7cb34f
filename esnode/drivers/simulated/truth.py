"""The physical truth of a simulated machine, for whoever checks the agent's claims.

A checker must not ask the agent what its caps are; it asks the machine's file. Everything here is
a pure function of the file's content and an instant, so it can be asked about the past, and about
a machine whose agent is dead. Instants are seconds of the host's clock since boot, the same for
all simulated machines of one host.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from esnode.drivers.simulated.changes import as_of, follow
from esnode.drivers.simulated.codec import HistoryLine
from esnode.drivers.simulated.machine import Gpu, Load, Machine, PendingLimit
from esnode.drivers.simulated.parts import PARTS
from esnode.drivers.simulated.physics import (
    advance,
    chassis_power_watts,
    clock_sm_hertz,
    operate,
    performance_ratio,
    throttle_reasons,
    utilization_ratio,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTruth:
    """What one GPU really does at an instant, whatever its sensors say."""

    uuid: str
    index: int
    name: str
    load: Load
    utilization_ratio: float
    demanded_watts: float
    draw_watts: float
    cap_requested_watts: int
    cap_in_force_watts: int
    caps_pending: tuple[PendingLimit, ...]
    temperature_celsius: float
    clock_sm_hertz: float
    throttle_reasons: tuple[str, ...]
    energy_joules: float
    performance_ratio: float | None
    """Throughput relative to unhindered; ``None`` without work."""
    faults: tuple[str, ...]
    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTruth:
    """What the whole machine really does at an instant."""

    at_seconds: float
    boot_number: int
    inlet_celsius: float
    chassis_power_watts: float
    gpus: tuple[GpuTruth, ...]


def truth_at(machine: Machine, now_seconds: float) -> MachineTruth:
    """The truth at an instant not before the machine's last change (before it: at that change)."""
    machine = advance(machine, now_seconds)
    return MachineTruth(
        at_seconds=machine.at_seconds,
        boot_number=machine.boot_number,
        inlet_celsius=machine.inlet_celsius,
        chassis_power_watts=chassis_power_watts(machine),
        gpus=tuple(_gpu_truth(gpu, machine.inlet_celsius) for gpu in machine.gpus),
    )


def _gpu_truth(gpu: Gpu, inlet_celsius: float) -> GpuTruth:
    operation = operate(gpu, inlet_celsius)
    return GpuTruth(
        uuid=gpu.uuid,
        index=gpu.index,
        name=PARTS[gpu.part].name,
        load=gpu.load,
        utilization_ratio=utilization_ratio(gpu),
        demanded_watts=operation.demanded_watts,
        draw_watts=operation.draw_watts,
        cap_requested_watts=gpu.limit_requested_watts,
        cap_in_force_watts=gpu.limit_in_force_watts,
        caps_pending=gpu.limits_pending,
        temperature_celsius=gpu.temperature_celsius,
        clock_sm_hertz=clock_sm_hertz(gpu, operation),
        throttle_reasons=throttle_reasons(gpu, operation),
        energy_joules=gpu.energy_joules,
        performance_ratio=performance_ratio(gpu, operation),
        faults=gpu.faults,
        is_lost=gpu.is_lost,
    )


def caps_in_force_watts(machine: Machine, now_seconds: float) -> dict[str, int]:
    """The cap that each GPU obeys at an instant not before the machine's last change."""
    return {gpu.uuid: gpu.limit_in_force_watts for gpu in advance(machine, now_seconds).gpus}


class PhysicalTruth:
    """The machine at every instant of one boot of its host, from its history.

    `lines` is what `Store.history` gives. Instants before the first change of that boot, or before
    the machine was built, have no answer.
    """

    def __init__(self, lines: Sequence[HistoryLine], *, host_boot_id: str) -> None:
        self._machines: list[Machine] = []
        machine: Machine | None = None
        for line in lines:
            machine = follow(machine, line.event, line.at_seconds)
            if machine.host_boot_id == host_boot_id:
                self._machines.append(machine)
        if machine is not None and not self._machines:
            self._machines.append(as_of(machine, 0.0, host_boot_id))
        self._instants = [machine.at_seconds for machine in self._machines]

    @property
    def begins_seconds(self) -> float | None:
        """The first instant with an answer; ``None`` for an empty history."""
        return self._instants[0] if self._instants else None

    def machine_at(self, seconds: float) -> Machine | None:
        """The machine at an instant, past or present; of two changes at one instant the later."""
        place = bisect.bisect_right(self._instants, seconds) - 1
        return advance(self._machines[place], seconds) if place >= 0 else None

    def at(self, seconds: float) -> MachineTruth | None:
        """The truth at an instant, past or present."""
        machine = self.machine_at(seconds)
        return truth_at(machine, seconds) if machine is not None else None

    def caps_in_force_watts(self, seconds: float) -> dict[str, int] | None:
        """The cap that each GPU obeyed at an instant."""
        machine = self.machine_at(seconds)
        return caps_in_force_watts(machine, seconds) if machine is not None else None

    def cap_instants(self, until_seconds: float) -> tuple[float, ...]:
        """Every instant up to the given one at which some cap in force may have changed.

        Between two of them all caps are constant, so a checker that asks at each has seen all.
        """
        instants: set[float] = set(self._instants)
        for place, machine in enumerate(self._machines):
            is_last = place + 1 == len(self._machines)
            end = until_seconds if is_last else self._instants[place + 1]
            instants |= {
                pending.takes_effect_seconds
                for gpu in machine.gpus
                for pending in gpu.limits_pending
                if pending.takes_effect_seconds <= end
            }
        return tuple(sorted(instant for instant in instants if instant <= until_seconds))
