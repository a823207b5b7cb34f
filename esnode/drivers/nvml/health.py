"""What went wrong with a device: memory errors, retired memory, the PCIe link, and its modes.

Its own file because `activity` asks what the device does now. It judges nothing: a count is a
count, and whether a row remapping is bad news is for the rules to say.
"""

from collections.abc import Callable
from dataclasses import replace

import pynvml

from esnode.drivers.nvml.fields import Fields
from esnode.drivers.nvml.identity import PRE_AMPERE
from esnode.readings.gpu import EccCount, GpuReading

_ERRORS = (
    ("corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
    ("uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
)
_SCOPES = (
    ("volatile", pynvml.NVML_VOLATILE_ECC),
    ("aggregate", pynvml.NVML_AGGREGATE_ECC),
)
_LOCATIONS = (
    ("device_memory", pynvml.NVML_MEMORY_LOCATION_DEVICE_MEMORY),
    ("sram", pynvml.NVML_MEMORY_LOCATION_SRAM),
    ("l1_cache", pynvml.NVML_MEMORY_LOCATION_L1_CACHE),
    ("l2_cache", pynvml.NVML_MEMORY_LOCATION_L2_CACHE),
    ("register_file", pynvml.NVML_MEMORY_LOCATION_REGISTER_FILE),
    ("texture_memory", pynvml.NVML_MEMORY_LOCATION_TEXTURE_MEMORY),
    ("cbu", pynvml.NVML_MEMORY_LOCATION_CBU),
)

_RETIRED_PAGE_FIELDS = {
    "retired_pages.multiple_single_bit_ecc_errors": (pynvml.NVML_FI_DEV_RETIRED_SBE, 0),
    "retired_pages.double_bit_ecc_error": (pynvml.NVML_FI_DEV_RETIRED_DBE, 0),
}


def add_ecc(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add every error counter that the device keeps, in total and by location."""
    mode = fields.take("is_ecc_enabled", pynvml.nvmlDeviceGetEccMode, fields.handle)
    counts = _count_errors(fields, "total", None)
    for location, location_type in _LOCATIONS:
        counts += _count_errors(fields, location, location_type)
    return replace(
        reading, is_ecc_enabled=None if mode is None else bool(mode[0]), ecc=tuple(counts)
    )


def _count_errors(fields: Fields, location: str, location_type: int | None) -> list[EccCount]:
    """Take the four counters of one location; one absence stands for all four if none is kept."""
    counts: list[EccCount] = []
    first_absent = len(fields.absent)
    for error, error_type in _ERRORS:
        for scope, counter_type in _SCOPES:
            what = f"ecc.{location}.{error}.{scope}"
            if location_type is None:
                errors_total = fields.take(
                    what,
                    pynvml.nvmlDeviceGetTotalEccErrors,
                    fields.handle,
                    error_type,
                    counter_type,
                )
            else:
                errors_total = fields.take(
                    what,
                    pynvml.nvmlDeviceGetMemoryErrorCounter,
                    fields.handle,
                    error_type,
                    counter_type,
                    location_type,
                )
            if errors_total is not None:
                counts.append(
                    EccCount(error=error, scope=scope, location=location, errors_total=errors_total)
                )
    reasons = {absence.reason for absence in fields.absent[first_absent:]}
    if not counts and len(reasons) == 1:
        del fields.absent[first_absent:]
        fields.leave_out(f"ecc.{location}", reasons.pop())
    return counts


def add_lost_memory(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the memory that the device took out of use: pages before Ampere, rows since."""
    if reading.identity.architecture in PRE_AMPERE:
        values = fields.take_field_values(_RETIRED_PAGE_FIELDS)
        return replace(
            reading,
            retired_pages=tuple(
                (what.removeprefix("retired_pages."), int(values[what]))
                for what in _RETIRED_PAGE_FIELDS
                if what in values
            ),
        )
    rows = fields.take("remapped_rows", pynvml.nvmlDeviceGetRemappedRows, fields.handle)
    if rows is None:
        return reading
    corrected, uncorrected, is_pending, has_failed = rows
    return replace(
        reading,
        remapped_rows=(("corrected", corrected), ("uncorrected", uncorrected)),
        is_remap_pending=bool(is_pending),
        is_remap_failed=bool(has_failed),
    )


def add_pcie(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the link's state. Its throughput is left alone: asking for it blocks for 20 ms."""

    def take(what: str, function: Callable[[pynvml.c_nvmlDevice_t], int]) -> int | None:
        return fields.take(what, function, fields.handle)

    return replace(
        reading,
        pcie_link_generation=take(
            "pcie_link_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration
        ),
        pcie_link_generation_max=take(
            "pcie_link_generation_max", pynvml.nvmlDeviceGetMaxPcieLinkGeneration
        ),
        pcie_link_width=take("pcie_link_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
        pcie_link_width_max=take("pcie_link_width_max", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
        pcie_replays_total=take("pcie_replays_total", pynvml.nvmlDeviceGetPcieReplayCounter),
    )


def add_modes(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add how the operator has set the device up."""
    persistence = fields.take(
        "is_persistence_enabled", pynvml.nvmlDeviceGetPersistenceMode, fields.handle
    )
    mig = fields.take("is_mig_enabled", pynvml.nvmlDeviceGetMigMode, fields.handle)
    return replace(
        reading,
        is_persistence_enabled=None if persistence is None else bool(persistence),
        is_mig_enabled=None if mig is None else bool(mig[0]),
    )
