"""The GPUs' part of the status document."""

from esnode.readings.gpu import GpuInventory, GpuReading
from esnode.readings.host import Absence
from esnode.snapshot import GpuState, Snapshot

Document = dict[str, object]


def describe_absence(absence: Absence) -> Document:
    """One thing that is missing, and why."""
    return {"what": absence.what, "reason": absence.reason}


def describe_driver(snapshot: Snapshot) -> Document | None:
    """The GPU driver, and the devices that it counts and cannot open."""
    inventory = snapshot.gpu_inventory
    if inventory is None:
        return None
    return {
        "driver": inventory.driver,
        "driver_version": inventory.driver_version,
        "library_version": inventory.library_version,
        "cuda_version": inventory.cuda_version,
        "found": inventory.found_count,
        "lost": [describe_absence(absence) for absence in inventory.lost],
        "absent": [describe_absence(absence) for absence in inventory.absent],
    }


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio * 100, 2)


def _megahertz(hertz: float | None) -> float | None:
    return None if hertz is None else hertz / 1e6


def describe_gpu(state: GpuState, inventory: GpuInventory | None) -> Document:
    """One GPU, with the predecessor's field names where it had them."""
    reading = state.reading
    document: Document = {
        "uuid": state.uuid,
        "gpu": None if state.index is None else str(state.index),
        "up": state.is_up,
        "reason": state.reason,
        "age_seconds": None if state.age_seconds is None else round(state.age_seconds, 3),
    }
    if reading is None:
        return document
    document |= {
        "name": reading.identity.name,
        "vendor": reading.identity.vendor,
        "identity": _identity(reading, inventory),
        "topo": {
            "pci_link_gen": reading.pcie_link_generation,
            "pci_link_width": reading.pcie_link_width,
        },
        "health": _gpu_health(state, reading),
        "temperature_celsius": reading.temperature_celsius,
        "memory_temperature_celsius": reading.memory_temperature_celsius,
        "temperature_margin_celsius": reading.temperature_margin_celsius,
        "power_watts": reading.power_watts,
        "power_average_watts": reading.power_average_watts,
        "power_instant_watts": reading.power_instant_watts,
        "power_limit": {
            "default_watts": reading.power_limit_default_watts,
            "min_watts": reading.power_limit_min_watts,
            "max_watts": reading.power_limit_max_watts,
            "requested_watts": reading.power_limit_requested_watts,
            "enforced_watts": reading.power_limit_enforced_watts,
        },
        "energy_joules_total": state.energy_joules_total,
        "energy_source": state.energy_source,
        "util_percent": _percent(reading.utilization_ratio),
        "memory_total_bytes": reading.memory_total_bytes,
        "memory_used_bytes": reading.memory_used_bytes,
        "fan_percent": _percent(max(reading.fan_speed_ratios, default=None)),
        "clock_sm_mhz": _megahertz(reading.clock_sm_hertz),
        "clock_mem_mhz": _megahertz(reading.clock_memory_hertz),
        "thermal_throttle": _has_reason(reading, "sw_thermal_slowdown", "hw_thermal_slowdown"),
        "power_throttle": _has_reason(reading, "sw_power_cap", "hw_power_brake_slowdown"),
        "process_count": reading.process_count,
        "processes": _processes(reading),
        "absent": [describe_absence(absence) for absence in reading.absent],
    }
    return document


def _identity(reading: GpuReading, inventory: GpuInventory | None) -> Document:
    identity = reading.identity
    return {
        "pci_bus_id": identity.pci_bus_id,
        "pci_gen": reading.pcie_link_generation,
        "pci_link_width": reading.pcie_link_width,
        "pci_gen_max": reading.pcie_link_generation_max,
        "pci_link_width_max": reading.pcie_link_width_max,
        "serial": identity.serial,
        "vbios_version": identity.vbios_version,
        "architecture": identity.architecture,
        "board_id": identity.board_id,
        "numa_node": identity.numa_node,
        "device_id": identity.pci_device_id,
        "subsystem_id": identity.pci_subsystem_id,
        "driver_version": inventory.driver_version if inventory else None,
        "nvml_version": inventory.library_version if inventory else None,
        "cuda_driver_version": inventory.cuda_version if inventory else None,
    }


def _gpu_health(state: GpuState, reading: GpuReading) -> Document:
    return {
        "pstate": reading.performance_state,
        "throttle_reasons": (
            None if reading.throttle_reasons is None else list(reading.throttle_reasons)
        ),
        "throttle_seconds_total": dict(state.throttle_seconds_total),
        "ecc_mode": reading.is_ecc_enabled,
        "ecc": [
            {
                "error": count.error,
                "scope": count.scope,
                "location": count.location,
                "count": count.errors_total,
            }
            for count in reading.ecc
        ],
        "retired_pages": dict(reading.retired_pages),
        "remapped_rows": dict(reading.remapped_rows),
        "remap_pending": reading.is_remap_pending,
        "remap_failed": reading.is_remap_failed,
        "encoder_util_percent": _percent(reading.encoder_utilization_ratio),
        "decoder_util_percent": _percent(reading.decoder_utilization_ratio),
        "bar1_total_bytes": reading.bar1_total_bytes,
        "bar1_used_bytes": reading.bar1_used_bytes,
        "pcie_replays_total": reading.pcie_replays_total,
    }


def _has_reason(reading: GpuReading, *reasons: str) -> bool | None:
    if reading.throttle_reasons is None:
        return None
    return any(reason in reading.throttle_reasons for reason in reasons)


def _processes(reading: GpuReading) -> list[Document] | None:
    if reading.processes is None:
        return None
    return [
        {
            "pid": process.pid,
            "name": process.name,
            "kind": process.kind,
            "memory_used_bytes": process.memory_used_bytes,
        }
        for process in reading.processes
    ]
