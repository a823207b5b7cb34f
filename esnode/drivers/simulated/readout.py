"""What a simulated GPU's own sensors and counters say: the machine's state as a `GpuReading`.

Apart from `driver` because it is pure. It differs from `truth` as a real driver's answer does from
the board: whole degrees, milliwatts, a lagging average, and sensors that may be stuck.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from esnode.drivers.simulated.machine import Gpu, Machine
from esnode.drivers.simulated.parts import CURVES, PARTS, Part
from esnode.drivers.simulated.physics import (
    Operation,
    clock_sm_hertz,
    memory_used_bytes,
    operate,
    throttle_reasons,
    utilization_ratio,
)
from esnode.readings.gpu import EccCount, GpuIdentity, GpuProcess, GpuReading
from esnode.readings.host import Absence

PCIE_LINK_WIDTH = 16
MEMORY_LOAD_CELSIUS = 6.0
"""How much further memory runs above the core when it is busy all the time; fitted by us."""

VBIOS_VERSION = "96.00.00.00.01"

NO_FAN = Absence(what="fan_speed_ratios", reason="the part has no fans of its own")
NO_MEMORY_SENSOR = Absence(
    what="memory_temperature_celsius", reason="the part has no memory temperature sensor"
)
NO_MIG = Absence(what="is_mig_enabled", reason="the part does not support MIG")


def identify(machine: Machine, gpu: Gpu) -> GpuIdentity:
    """The identity that a driver would give: nothing in it changes while the file lives."""
    part = PARTS[gpu.part]
    digits = hashlib.sha256(gpu.uuid.encode()).hexdigest()
    slot = 0x18 + 0x10 * (gpu.index % 8)
    return GpuIdentity(
        uuid=gpu.uuid,
        index=gpu.index,
        name=part.name,
        vendor="nvidia",
        pci_bus_id=f"{gpu.index // 8:08x}:{slot:02x}:00.0",
        serial=str(10**12 + int(digits[:9], 16)),
        vbios_version=VBIOS_VERSION,
        architecture=part.architecture,
        minor_number=gpu.index,
        numa_node=2 * gpu.index // len(machine.gpus),
        pci_device_id=part.pci_device_id,
        board_id=(gpu.index // 8 << 16) + (slot << 8),
        is_mig_supported=part.is_mig_supported,
    )


@lru_cache(maxsize=256)
def nameplate(identity: GpuIdentity, part_key: str) -> GpuReading:
    """What every reading of a board has in common."""
    part = PARTS[part_key]
    return GpuReading(
        identity=identity,
        encoder_utilization_ratio=0.0,
        decoder_utilization_ratio=0.0,
        memory_total_bytes=part.memory_total_bytes,
        memory_reserved_bytes=part.memory_reserved_bytes,
        bar1_total_bytes=part.bar1_total_bytes,
        bar1_used_bytes=1024 * 1024,
        slowdown_celsius=part.slowdown_celsius,
        shutdown_celsius=part.shutdown_celsius,
        power_limit_default_watts=float(part.limit_default_watts),
        power_limit_min_watts=float(part.limit_min_watts),
        power_limit_max_watts=float(part.limit_max_watts),
        clock_sm_max_hertz=part.clock_max_hertz,
        clock_memory_max_hertz=part.clock_memory_hertz,
        clock_graphics_max_hertz=part.clock_max_hertz,
        is_ecc_enabled=True,
        remapped_rows=(("corrected", 0), ("uncorrected", 0)),
        is_remap_pending=False,
        is_remap_failed=False,
        pcie_link_generation=part.pcie_link_generation,
        pcie_link_generation_max=part.pcie_link_generation,
        pcie_link_width=PCIE_LINK_WIDTH,
        pcie_link_width_max=PCIE_LINK_WIDTH,
        pcie_replays_total=0,
        is_persistence_enabled=True,
        is_mig_enabled=False if part.is_mig_supported else None,
        absent=_absent(part),
    )


def read_out(
    gpu: Gpu,
    identity: GpuIdentity,
    *,
    inlet_celsius: float,
    read_process_name: Callable[[int], str | None],
) -> GpuReading:
    """One GPU's sensors and counters, in the state that it is in."""
    part = PARTS[gpu.part]
    operation = operate(gpu, inlet_celsius)
    busy_ratio = utilization_ratio(gpu)
    curve = CURVES[gpu.load.kind]
    is_idle = busy_ratio == 0.0
    memory_used = memory_used_bytes(gpu)
    temperature, average, instant = _sensors(gpu, operation)
    clock = round(clock_sm_hertz(gpu, operation) / 15e6) * 15e6
    memory_celsius = _memory_celsius(part, temperature, busy_ratio * curve.memory_utilization_ratio)
    return replace(
        nameplate(identity, gpu.part),
        utilization_ratio=round(busy_ratio, 2),
        memory_utilization_ratio=round(busy_ratio * curve.memory_utilization_ratio, 2),
        memory_used_bytes=memory_used,
        memory_free_bytes=part.memory_total_bytes - part.memory_reserved_bytes - memory_used,
        temperature_celsius=temperature,
        memory_temperature_celsius=memory_celsius,
        temperature_margin_celsius=part.max_operating_celsius - temperature,
        power_average_watts=average,
        power_instant_watts=instant,
        power_limit_requested_watts=float(gpu.limit_requested_watts),
        power_limit_enforced_watts=float(gpu.limit_in_force_watts),
        energy_joules_total=round(gpu.energy_joules, 3),
        clock_sm_hertz=clock,
        clock_memory_hertz=part.clock_memory_idle_hertz if is_idle else part.clock_memory_hertz,
        clock_graphics_hertz=clock,
        clock_video_hertz=min(part.clock_video_max_hertz, clock),
        performance_state=part.idle_performance_state if is_idle else 0,
        throttle_reasons=throttle_reasons(gpu, operation),
        violation_seconds_total=(
            ("power", gpu.power_violation_seconds),
            ("thermal", gpu.thermal_violation_seconds),
        ),
        ecc=_ecc_counts(gpu),
        processes=_processes(gpu, memory_used, read_process_name),
    )


def _sensors(gpu: Gpu, operation: Operation) -> tuple[float, float, float]:
    """Temperature, average and instantaneous power, as the sensors give them."""
    if gpu.stuck is not None:
        temperature = gpu.stuck.temperature_celsius
        average, instant = gpu.stuck.power_average_watts, gpu.stuck.power_instant_watts
    else:
        temperature = gpu.temperature_celsius
        average, instant = gpu.power_average_watts, operation.draw_watts
    return float(round(temperature)), round(average, 3), round(instant, 3)


def _memory_celsius(part: Part, celsius: float, memory_busy_ratio: float) -> float | None:
    offset = part.memory_temperature_offset_celsius
    if offset is None:
        return None
    return float(round(celsius + offset + MEMORY_LOAD_CELSIUS * memory_busy_ratio))


def _absent(part: Part) -> tuple[Absence, ...]:
    absent = [NO_FAN]
    if part.memory_temperature_offset_celsius is None:
        absent.append(NO_MEMORY_SENSOR)
    if not part.is_mig_supported:
        absent.append(NO_MIG)
    return tuple(absent)


def _ecc_counts(gpu: Gpu) -> tuple[EccCount, ...]:
    counts = (
        ("corrected", "volatile", gpu.ecc_corrected_volatile_total),
        ("corrected", "aggregate", gpu.ecc_corrected_aggregate_total),
        ("uncorrected", "volatile", gpu.ecc_uncorrected_volatile_total),
        ("uncorrected", "aggregate", gpu.ecc_uncorrected_aggregate_total),
    )
    return tuple(
        EccCount(error=error, scope=scope, location="total", errors_total=count)
        for error, scope, count in counts
    )


def _processes(
    gpu: Gpu, memory_used: int, read_process_name: Callable[[int], str | None]
) -> tuple[GpuProcess, ...]:
    pid = gpu.load.owner_pid
    if pid is None or utilization_ratio(gpu) == 0.0:
        return ()
    name = read_process_name(pid)
    process = GpuProcess(pid=pid, kind="compute", name=name, memory_used_bytes=memory_used)
    return (process,)
