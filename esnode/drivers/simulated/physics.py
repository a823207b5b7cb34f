"""What time does to a simulated GPU: draw, heat, throttling, energy.

Pure: state and instants in, state out; it knows no file, no clock and no driver. Between two
events of the machine a GPU passes through a few segments of constant draw, each in closed form, so
a state can be carried any distance at once and two short steps make one long one:

* demand is linear in the load: idle, and a share of what this kind of work draws unhindered;
* draw is demand, cut to the cap in force;
* temperature follows inlet + draw x resistance with one time constant; at the slowdown temperature
  draw is cut further, to what keeps it there; at the shutdown temperature the GPU goes off;
* the averaged power field is a first-order lag of one second.

Source: the limiters and their reasons as nvml.h describes them; the thermal model is the usual
lumped one, fitted per part in `parts`.
"""

import math
from dataclasses import dataclass, replace

from esnode.drivers.simulated.machine import LOST, Gpu, Machine
from esnode.drivers.simulated.parts import (
    COMPUTE,
    CURVES,
    PARTS,
    SUPPLY_EFFICIENCY_RATIO,
    Individual,
    Part,
    individual,
)

POWER_AVERAGE_SECONDS = 1.0
"""The lag of the averaged power field (Ampere and later, but for GA100)."""

HELD_CELSIUS = 1e-6
"""Nearer than this to the slowdown temperature counts as at it, so that rounding cannot make a
held GPU flicker between two draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """How a GPU runs at one instant, and until its next segment begins."""

    demanded_watts: float
    """What the work would draw if neither cap nor heat held it."""
    draw_watts: float
    is_power_capped: bool
    is_thermally_held: bool
    settling_celsius: float
    """Where the temperature is heading at this draw."""


def board(gpu: Gpu) -> tuple[Part, Individual]:
    """The part of a GPU and its own deviation from it."""
    return PARTS[gpu.part], individual(gpu.part, gpu.uuid)


def full_demand_watts(gpu: Gpu, kind: str) -> float:
    """What unhindered work of this kind draws on this board at a load of 1."""
    part, own = board(gpu)
    return max(own.idle_watts, part.limit_max_watts * CURVES[kind].knee_ratio * own.demand_ratio)


def demanded_watts(gpu: Gpu) -> float:
    """What the present load would draw if nothing held it; a lost GPU works for no one."""
    _, own = board(gpu)
    if gpu.is_shut_down:
        return 0.0
    if LOST in gpu.faults:
        return own.idle_watts
    full = full_demand_watts(gpu, gpu.load.kind)
    return own.idle_watts + gpu.load.ratio * (full - own.idle_watts)


def operate(gpu: Gpu, inlet_celsius: float) -> Operation:
    """The operating point that demand, cap and temperature leave the GPU."""
    part, own = board(gpu)
    resistance = own.thermal_resistance_celsius_per_watt / gpu.cooling_ratio
    demanded = demanded_watts(gpu)
    capped = min(demanded, float(gpu.limit_in_force_watts))
    is_hot = gpu.temperature_celsius >= part.slowdown_celsius - HELD_CELSIUS
    settling = inlet_celsius + capped * resistance
    draw = capped
    is_held = is_hot and settling > part.slowdown_celsius + HELD_CELSIUS
    if is_held:
        sustainable = (part.slowdown_celsius - inlet_celsius) / resistance
        draw = max(min(capped, own.idle_watts), min(capped, sustainable))
        settling = inlet_celsius + draw * resistance
    return Operation(
        demanded_watts=demanded,
        draw_watts=draw,
        is_power_capped=demanded > gpu.limit_in_force_watts,
        is_thermally_held=is_held,
        settling_celsius=settling,
    )


def _seconds_until(celsius: float, gpu: Gpu, operation: Operation, time_constant: float) -> float:
    """When a rising temperature reaches a threshold; infinity if it never does."""
    settling = operation.settling_celsius
    if gpu.temperature_celsius >= celsius - HELD_CELSIUS or settling <= celsius + HELD_CELSIUS:
        return math.inf
    return time_constant * math.log((settling - gpu.temperature_celsius) / (settling - celsius))


def _pass(gpu: Gpu, operation: Operation, duration_seconds: float) -> Gpu:
    """Carry a GPU through one segment of constant draw."""
    part = PARTS[gpu.part]
    settling = operation.settling_celsius
    if operation.is_thermally_held and abs(settling - gpu.temperature_celsius) < HELD_CELSIUS:
        temperature = gpu.temperature_celsius
    else:
        temperature = settling + (gpu.temperature_celsius - settling) * math.exp(
            -duration_seconds / part.thermal_time_constant_seconds
        )
    draw = operation.draw_watts
    average = draw + (gpu.power_average_watts - draw) * math.exp(
        -duration_seconds / POWER_AVERAGE_SECONDS
    )
    capped_seconds = duration_seconds if operation.is_power_capped else 0.0
    held_seconds = duration_seconds if operation.is_thermally_held else 0.0
    return replace(
        gpu,
        temperature_celsius=temperature,
        power_average_watts=average,
        energy_joules=gpu.energy_joules + draw * duration_seconds,
        power_violation_seconds=gpu.power_violation_seconds + capped_seconds,
        thermal_violation_seconds=gpu.thermal_violation_seconds + held_seconds,
    )


def advance_gpu(gpu: Gpu, inlet_celsius: float, since_seconds: float, until_seconds: float) -> Gpu:
    """Carry one GPU from one instant to a later one, through every segment between."""
    part = PARTS[gpu.part]
    now = since_seconds
    while True:
        if gpu.limits_pending and gpu.limits_pending[0].takes_effect_seconds <= now:
            due, *later = gpu.limits_pending
            gpu = replace(gpu, limit_in_force_watts=due.watts, limits_pending=tuple(later))
            continue
        if now >= until_seconds:
            return gpu
        operation = operate(gpu, inlet_celsius)
        constant = part.thermal_time_constant_seconds
        slowdown_at = now + _seconds_until(part.slowdown_celsius, gpu, operation, constant)
        shutdown_at = now + _seconds_until(part.shutdown_celsius, gpu, operation, constant)
        limit_at = gpu.limits_pending[0].takes_effect_seconds if gpu.limits_pending else math.inf
        end = min(until_seconds, limit_at, slowdown_at, shutdown_at)
        gpu = _pass(gpu, operation, end - now)
        now = end
        if end == slowdown_at:
            gpu = replace(gpu, temperature_celsius=part.slowdown_celsius)
        elif end == shutdown_at:
            gpu = replace(gpu, temperature_celsius=part.shutdown_celsius, is_shut_down=True)


def advance(machine: Machine, now_seconds: float) -> Machine:
    """Carry the whole machine to `now_seconds`; an instant before its own leaves it as it is."""
    if now_seconds <= machine.at_seconds:
        return machine
    gpus = tuple(
        advance_gpu(gpu, machine.inlet_celsius, machine.at_seconds, now_seconds)
        for gpu in machine.gpus
    )
    return replace(machine, at_seconds=now_seconds, gpus=gpus)


def idle_celsius(part: Part, uuid: str, inlet_celsius: float) -> float:
    """Where a GPU without work settles."""
    own = individual(part.key, uuid)
    return inlet_celsius + own.idle_watts * own.thermal_resistance_celsius_per_watt


def throttle_reasons(gpu: Gpu, operation: Operation) -> tuple[str, ...]:
    """What holds the clocks now, in the order of `readings.gpu.THROTTLE_REASONS`."""
    reasons: list[str] = []
    if utilization_ratio(gpu) == 0.0:
        reasons.append("gpu_idle")
    if operation.is_power_capped:
        reasons.append("sw_power_cap")
    if operation.is_thermally_held:
        reasons += ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown"]
    return tuple(reasons)


def utilization_ratio(gpu: Gpu) -> float:
    """Share of time in which the GPU runs work."""
    return 0.0 if gpu.is_lost else gpu.load.ratio


def _busy_power_ratio(gpu: Gpu, draw_watts: float) -> float:
    """Power while work runs, as a share of what this board would draw at its part's maximum.

    A load of a quarter runs for a quarter of the time, so its busy power is idle and four times
    what the average shows above it.
    """
    part, own = board(gpu)
    busy_watts = own.idle_watts + (draw_watts - own.idle_watts) / gpu.load.ratio
    return busy_watts / (part.limit_max_watts * own.demand_ratio)


def performance_ratio(gpu: Gpu, operation: Operation) -> float | None:
    """Throughput at the present power relative to unhindered; ``None`` without work."""
    if utilization_ratio(gpu) == 0.0:
        return None
    if operation.draw_watts >= operation.demanded_watts:
        return 1.0
    curve = CURVES[gpu.load.kind]
    return curve.throughput_ratio(_busy_power_ratio(gpu, operation.draw_watts))


def clock_sm_hertz(gpu: Gpu, operation: Operation) -> float:
    """The SM clock: compute-bound throughput follows it, so it follows the compute curve."""
    part, own = board(gpu)
    if utilization_ratio(gpu) == 0.0:
        return part.clock_idle_hertz
    full = full_demand_watts(gpu, gpu.load.kind) / (part.limit_max_watts * own.demand_ratio)
    unhindered = COMPUTE.throughput_ratio(full)
    present = COMPUTE.throughput_ratio(_busy_power_ratio(gpu, operation.draw_watts))
    share = min(1.0, present / unhindered) if unhindered else 1.0
    return max(part.clock_idle_hertz, part.clock_max_hertz * share)


def memory_used_bytes(gpu: Gpu) -> int:
    """What the load holds: what it says, or four fifths of the free memory at a load of 1."""
    part = PARTS[gpu.part]
    available = part.memory_total_bytes - part.memory_reserved_bytes
    if gpu.is_lost:
        return 0
    if gpu.load.memory_bytes is not None:
        return min(available, gpu.load.memory_bytes)
    return int(0.8 * gpu.load.ratio * available)


def chassis_power_watts(machine: Machine) -> float:
    """What the machine's own meter reads at the wall: the GPUs, the rest, and the supply's loss."""
    watts = 0.0
    for gpu in machine.gpus:
        watts += operate(gpu, machine.inlet_celsius).draw_watts
        watts += PARTS[gpu.part].chassis_share_watts
    return watts / SUPPLY_EFFICIENCY_RATIO
