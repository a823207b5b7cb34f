"""Families of the GPUs. Values carry `uuid` alone; `esnode_gpu_info` carries the identity once."""

from collections.abc import Callable, Iterator
from functools import partial

from esnode.metrics.model import (
    Labels,
    Sample,
    Value,
    View,
    as_text,
    each,
    families,
    gpu,
    gpu_each,
    gpu_state,
    one,
)
from esnode.readings.gpu import THROTTLE_REASONS, GpuReading
from esnode.snapshot import Snapshot

_BASIC = frozenset({
    "gpu_up", "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_memory_total_bytes",
    "gpu_temperature_celsius", "gpu_power_watts", "gpu_power_limit_watts", "gpus_found",
})  # fmt: skip


def _info(snapshot: Snapshot) -> Iterator[Sample]:
    inventory = snapshot.gpu_inventory
    for gpu_ in inventory.gpus if inventory else ():
        labels = (
            gpu_.uuid, gpu_.index, gpu_.name, gpu_.vendor, gpu_.pci_bus_id, gpu_.serial,
            gpu_.architecture, gpu_.vbios_version, gpu_.numa_node,
        )  # fmt: skip
        yield tuple(as_text(label) for label in labels), 1


def _driver(snapshot: Snapshot) -> Iterator[Sample]:
    inventory = snapshot.gpu_inventory
    if inventory is not None:
        yield (
            (
                inventory.driver,
                as_text(inventory.driver_version),
                as_text(inventory.library_version),
                as_text(inventory.cuda_version),
            ),
            1,
        )


def _reasons(reading: GpuReading) -> Iterator[tuple[Labels, Value]]:
    if reading.throttle_reasons is not None:
        for reason in THROTTLE_REASONS:
            yield (reason,), reason in reading.throttle_reasons
        for reason in reading.throttle_reasons:
            if reason not in THROTTLE_REASONS:
                yield (reason,), 1


def _throttle_seconds(view: View) -> Iterator[Sample]:
    for state in view.snapshot.gpus:
        if state.reading is None or state.reading.throttle_reasons is None:
            continue
        seconds = dict(state.throttle_seconds_total)
        for reason in THROTTLE_REASONS:
            yield (state.uuid, reason), seconds.pop(reason, 0.0)
        for reason, value in seconds.items():
            yield (state.uuid, reason), value


def _clocks(reading: GpuReading) -> Iterator[tuple[Labels, Value]]:
    yield ("sm",), reading.clock_sm_hertz
    yield ("memory",), reading.clock_memory_hertz
    yield ("graphics",), reading.clock_graphics_hertz
    yield ("video",), reading.clock_video_hertz


def _max_clocks(reading: GpuReading) -> Iterator[tuple[Labels, Value]]:
    yield ("sm",), reading.clock_sm_max_hertz
    yield ("memory",), reading.clock_memory_max_hertz
    yield ("graphics",), reading.clock_graphics_max_hertz


def _ecc(is_total: bool) -> Callable[[GpuReading], Iterator[tuple[Labels, Value]]]:
    def expand(reading: GpuReading) -> Iterator[tuple[Labels, Value]]:
        for count in reading.ecc:
            if is_total and count.location == "total":
                yield (count.error, count.scope), count.errors_total
            elif not is_total and count.location != "total":
                yield (count.error, count.scope, count.location), count.errors_total

    return expand


def _energy_source(view: View) -> Iterator[Sample]:
    for state in view.snapshot.gpus:
        if state.energy_source:
            yield (state.uuid, state.energy_source), 1


def _process_memory(view: View) -> Iterator[Sample]:
    if not view.is_per_process:
        return
    for state in view.snapshot.gpus:
        for process in state.reading.processes or () if state.reading else ():
            labels = (state.uuid, str(process.pid), as_text(process.name), process.kind)
            yield labels, process.memory_used_bytes


_family = partial(families, "gpu", basic=_BASIC)

GPU = (
    *_family(
        (),
        ("gpus_found", "gauge", "GPUs that the driver counts, answering or not.", one(lambda s: s.gpu_inventory.found_count if s.gpu_inventory else None)),
        ("gpus_lost", "gauge", "GPUs that the driver counts but cannot open.", one(lambda s: len(s.gpu_inventory.lost) if s.gpu_inventory else None)),
    ),
    *_family(("uuid", "index", "name", "vendor", "pci_bus_id", "serial", "architecture", "vbios_version", "numa_node"), ("gpu_info", "info", "Identity of each GPU; join on uuid.", each(_info))),
    *_family(("driver", "driver_version", "library_version", "cuda_version"), ("gpu_driver_info", "info", "The GPU driver.", each(_driver))),
    *_family(
        ("uuid",),
        ("gpu_up", "gauge", "1 when the GPU answered within its deadline.", gpu_state(lambda g: g.is_up)),
        ("gpu_reading_age_seconds", "gauge", "Age of what is served of the GPU.", gpu_state(lambda g: g.age_seconds)),
        ("gpu_utilization_ratio", "gauge", "Share of time in which a kernel ran.", gpu(lambda r: r.utilization_ratio)),
        ("gpu_memory_utilization_ratio", "gauge", "Share of time in which memory was read or written.", gpu(lambda r: r.memory_utilization_ratio)),
        ("gpu_encoder_utilization_ratio", "gauge", "Utilisation of the video encoder.", gpu(lambda r: r.encoder_utilization_ratio)),
        ("gpu_decoder_utilization_ratio", "gauge", "Utilisation of the video decoder.", gpu(lambda r: r.decoder_utilization_ratio)),
        ("gpu_memory_total_bytes", "gauge", "Device memory.", gpu(lambda r: r.memory_total_bytes)),
        ("gpu_memory_used_bytes", "gauge", "Device memory in use.", gpu(lambda r: r.memory_used_bytes)),
        ("gpu_memory_free_bytes", "gauge", "Free device memory.", gpu(lambda r: r.memory_free_bytes)),
        ("gpu_memory_reserved_bytes", "gauge", "Device memory that the driver keeps.", gpu(lambda r: r.memory_reserved_bytes)),
        ("gpu_bar1_total_bytes", "gauge", "BAR1 aperture.", gpu(lambda r: r.bar1_total_bytes)),
        ("gpu_bar1_used_bytes", "gauge", "BAR1 aperture in use.", gpu(lambda r: r.bar1_used_bytes)),
        ("gpu_temperature_celsius", "gauge", "Core temperature.", gpu(lambda r: r.temperature_celsius)),
        ("gpu_memory_temperature_celsius", "gauge", "Memory temperature.", gpu(lambda r: r.memory_temperature_celsius)),
        ("gpu_slowdown_temperature_celsius", "gauge", "Temperature at which the hardware slows down.", gpu(lambda r: r.slowdown_celsius)),
        ("gpu_shutdown_temperature_celsius", "gauge", "Temperature at which the hardware shuts down.", gpu(lambda r: r.shutdown_celsius)),
        ("gpu_temperature_margin_celsius", "gauge", "Distance to the thermal limit (T.Limit).", gpu(lambda r: r.temperature_margin_celsius)),
        ("gpu_power_watts", "gauge", "Draw: the device's average, else its instantaneous value.", gpu(lambda r: r.power_watts)),
        ("gpu_power_average_watts", "gauge", "Draw averaged by the device (1 s on most parts).", gpu(lambda r: r.power_average_watts)),
        ("gpu_power_instant_watts", "gauge", "Instantaneous draw.", gpu(lambda r: r.power_instant_watts)),
        ("gpu_power_limit_watts", "gauge", "Power limit in force.", gpu(lambda r: r.power_limit_enforced_watts)),
        ("gpu_power_limit_requested_watts", "gauge", "Power limit last asked for.", gpu(lambda r: r.power_limit_requested_watts)),
        ("gpu_power_limit_default_watts", "gauge", "Power limit after a reset.", gpu(lambda r: r.power_limit_default_watts)),
        ("gpu_power_limit_min_watts", "gauge", "Lowest power limit that the device takes.", gpu(lambda r: r.power_limit_min_watts)),
        ("gpu_power_limit_max_watts", "gauge", "Highest power limit that the device takes.", gpu(lambda r: r.power_limit_max_watts)),
        ("gpu_energy_joules_total", "counter", "Energy: the device's own counter, else integrated since the agent started.", gpu_state(lambda g: g.energy_joules_total)),
        ("gpu_pstate", "gauge", "Performance state; 0 is the fastest.", gpu(lambda r: r.performance_state)),
        ("gpu_ecc_enabled", "gauge", "1 when error correction is on.", gpu(lambda r: r.is_ecc_enabled)),
        ("gpu_row_remap_pending", "gauge", "1 when a row remapping waits for a reset.", gpu(lambda r: r.is_remap_pending)),
        ("gpu_row_remap_failed", "gauge", "1 when a row could not be remapped.", gpu(lambda r: r.is_remap_failed)),
        ("gpu_pcie_link_generation", "gauge", "PCIe generation in use.", gpu(lambda r: r.pcie_link_generation)),
        ("gpu_pcie_link_generation_max", "gauge", "PCIe generation that device and slot can do.", gpu(lambda r: r.pcie_link_generation_max)),
        ("gpu_pcie_link_width", "gauge", "PCIe lanes in use.", gpu(lambda r: r.pcie_link_width)),
        ("gpu_pcie_link_width_max", "gauge", "PCIe lanes that device and slot can do.", gpu(lambda r: r.pcie_link_width_max)),
        ("gpu_pcie_replays_total", "counter", "PCIe packets sent again.", gpu(lambda r: r.pcie_replays_total)),
        ("gpu_persistence_enabled", "gauge", "1 when the driver stays loaded without clients.", gpu(lambda r: r.is_persistence_enabled)),
        ("gpu_mig_supported", "gauge", "1 when the GPU can be split into instances.", gpu(lambda r: r.identity.is_mig_supported)),
        ("gpu_mig_enabled", "gauge", "1 when the GPU is split into instances.", gpu(lambda r: r.is_mig_enabled)),
        ("gpu_processes", "gauge", "Processes with a context on the GPU.", gpu(lambda r: r.process_count)),
    ),
    *_family(("uuid", "source"), ("gpu_energy_source_info", "info", "Where the energy counter comes from: counter or integrated.", _energy_source)),
    *_family(
        ("uuid", "clock"),
        ("gpu_clock_hertz", "gauge", "Clock now.", gpu_each(_clocks)),
        ("gpu_clock_max_hertz", "gauge", "Highest clock.", gpu_each(_max_clocks)),
    ),
    *_family(
        ("uuid", "reason"),
        ("gpu_clocks_event_reason", "gauge", "1 while the reason holds the clocks.", gpu_each(_reasons)),
        ("gpu_throttle_seconds_total", "counter", "Time for which the reason held the clocks, since the agent started.", _throttle_seconds),
    ),
    *_family(("uuid", "policy"), ("gpu_violation_seconds_total", "counter", "Time for which the device says that a policy held its clocks.", gpu_each(lambda r: [((policy,), seconds) for policy, seconds in r.violation_seconds_total]))),
    *_family(("uuid", "fan"), ("gpu_fan_speed_ratio", "gauge", "Intended speed of each fan.", gpu_each(lambda r: [((str(fan),), ratio) for fan, ratio in enumerate(r.fan_speed_ratios)]))),
    *_family(("uuid", "error", "scope"), ("gpu_ecc_errors_total", "counter", "Memory errors: volatile since driver load, aggregate over the device's life.", gpu_each(_ecc(is_total=True)))),
    *_family(("uuid", "error", "scope", "location"), ("gpu_ecc_location_errors_total", "counter", "Memory errors by location.", gpu_each(_ecc(is_total=False)))),
    *_family(("uuid", "cause"), ("gpu_retired_pages", "gauge", "Pages taken out of use (before Ampere).", gpu_each(lambda r: [((cause,), pages) for cause, pages in r.retired_pages]))),
    *_family(("uuid", "kind"), ("gpu_remapped_rows", "gauge", "Rows remapped after errors (Ampere and later).", gpu_each(lambda r: [((kind,), rows) for kind, rows in r.remapped_rows]))),
    *_family(("uuid", "pid", "process", "kind"), ("gpu_process_memory_used_bytes", "gauge", "Device memory by process; served with metrics_per_process.", _process_memory)),
)  # fmt: skip
