"""One opened NVML: finds devices, reads them, sets their limits.

Its own file because it is the whole of what `driver` needs of `pynvml`, and is imported at the
first discovery only. It knows no threads: who may call what when is decided in `driver`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pynvml

from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.drivers.nvml.activity import (
    add_clocks,
    add_fans,
    add_field_values,
    add_limits_in_force,
    add_memory,
    add_power_limits,
    add_temperatures,
    add_utilization,
    violation_fields,
)
from esnode.drivers.nvml.faults import (
    UNSUPPORTED_CODES,
    describe,
    explain_unavailable,
    raise_if_gone,
)
from esnode.drivers.nvml.fields import Fields, UnsupportedFields
from esnode.drivers.nvml.gone import DeviceGone
from esnode.drivers.nvml.health import add_ecc, add_lost_memory, add_modes, add_pcie
from esnode.drivers.nvml.identity import read_identity
from esnode.drivers.nvml.processes import ReadName, add_processes
from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuReading
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, round_up

IDENTITY_ROUNDS = 60
"""Discoveries for which an identity is believed: it hardly changes, and asking costs 11 calls."""

_MILLIWATTS = 1000

_MILLIWATTS_MAX = 2**32 - 1
"""NVML takes an unsigned 32-bit number, and the binding would wrap a larger one."""

_STEPS = (
    add_utilization,
    add_memory,
    add_temperatures,
    add_power_limits,
    add_limits_in_force,
    add_clocks,
    add_fans,
    add_ecc,
    add_lost_memory,
    add_pcie,
    add_modes,
)

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Device:
    """One device of this session: its handle, and what is known of it."""

    handle: pynvml.c_nvmlDevice_t
    identity: GpuIdentity
    identity_rounds_left: int = IDENTITY_ROUNDS
    unsupported: UnsupportedFields = field(default_factory=UnsupportedFields)


def open_session(module_version: Callable[[], str | None]) -> "Session":
    """Initialise NVML once. `module_version` reads the loaded kernel module's, to explain.

    Raises:
        DriverUnavailable: it cannot be opened now.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        details = ""
        if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            library = _ask(pynvml.nvmlSystemGetNVMLVersion)
            details = f"; library {library or 'unknown'}, module {module_version() or 'unknown'}"
        raise explain_unavailable("nvmlInit_v2", error.value, details) from error
    return Session()


class Session:
    """NVML between one nvmlInit and its nvmlShutdown."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}
        self._driver_version = _ask(pynvml.nvmlSystemGetDriverVersion)
        self._violation_fields = violation_fields(self._driver_version)
        self._library_version = _ask(pynvml.nvmlSystemGetNVMLVersion)
        self._cuda_version = _word_cuda_version(_ask(pynvml.nvmlSystemGetCudaDriverVersion_v2))

    def discover(self) -> GpuInventory:
        """List the devices. One that does not answer is in `lost`, and the others go on.

        Raises:
            DeviceGone: the session is void.
            DriverUnavailable: not even a count can be had.
        """
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise_if_gone("nvmlDeviceGetCount_v2", error.value)
            raise explain_unavailable("nvmlDeviceGetCount_v2", error.value) from error
        found: dict[str, Device] = {}
        lost: list[Absence] = []
        for index in range(count):
            try:
                device = self._find(index)
            except DeviceGone as gone:
                if gone.is_session_void:
                    raise
                lost.append(Absence(what=f"gpu:{index}", reason=gone.line))
            else:
                found[device.identity.uuid] = device
        self._devices = found
        return GpuInventory(
            driver="nvml",
            driver_version=self._driver_version,
            library_version=self._library_version,
            cuda_version=self._cuda_version,
            gpus=tuple(device.identity for device in found.values()),
            lost=tuple(lost),
            found_count=count,
        )

    def read(self, gpu: GpuIdentity, read_name: ReadName) -> GpuReading:
        """Ask for every value of one device.

        Raises:
            DeviceGone: the device or the session is void.
        """
        device = self._recall(gpu)
        fields = Fields(device.handle, device.unsupported)
        reading = GpuReading(identity=device.identity)
        for step in _STEPS:
            reading = step(reading, fields)
        reading = add_field_values(reading, fields, self._violation_fields)
        reading = add_processes(reading, fields, read_name)
        return replace(reading, absent=tuple(fields.absent))

    def read_power_limit(self, gpu: GpuIdentity) -> EnforcedLimit:
        """Ask what limit one device obeys.

        Raises:
            DeviceGone: the device or the session is void.
        """
        device = self._recall(gpu)
        fields = Fields(device.handle, device.unsupported)
        reading = add_limits_in_force(GpuReading(identity=device.identity), fields)
        return EnforcedLimit(
            device=gpu.uuid,
            enforced_watts=round_up(reading.power_limit_enforced_watts),
            requested_watts=round_up(reading.power_limit_requested_watts),
        )

    def set_power_limit(self, gpu: GpuIdentity, watts: int) -> None:
        """Ask one device for a limit.

        Raises:
            PowerLimitRefused: it kept its old one.
            DeviceFault: it did not say.
            DeviceGone: the device or the session is void.
        """
        function = "nvmlDeviceSetPowerManagementLimit"
        milliwatts = watts * _MILLIWATTS
        if not 0 < milliwatts <= _MILLIWATTS_MAX:
            raise PowerLimitRefused(f"{watts} W is no power limit")
        device = self._recall(gpu)
        try:
            pynvml.nvmlDeviceSetPowerManagementLimit(device.handle, milliwatts)
        except pynvml.NVMLError as error:
            raise_if_gone(function, error.value)
            said = describe(function, error.value)
            if error.value == pynvml.NVML_ERROR_INVALID_ARGUMENT:
                bounds = _word_bounds(device.handle)
                raise PowerLimitRefused(f"{watts} W is {bounds} [{said}]") from error
            if error.value == pynvml.NVML_ERROR_NO_PERMISSION:
                raise PowerLimitRefused(
                    f"setting a power limit needs root or CAP_SYS_ADMIN [{said}]"
                ) from error
            if error.value in UNSUPPORTED_CODES:
                raise PowerLimitRefused(f"this device takes no power limit [{said}]") from error
            raise DeviceFault(f"whether {watts} W are in force is unknown [{said}]") from error

    def close(self) -> None:
        """Close NVML and its device files; a library that is closed already is left alone."""
        self._devices = {}
        _ask(pynvml.nvmlShutdown)

    def _recall(self, gpu: GpuIdentity) -> Device:
        """Give a device that some discovery found, be it one of an earlier session.

        Raises:
            DeviceGone: the device is not there any more, or the session is void.
        """
        known = self._devices.get(gpu.uuid)
        if known is not None:
            return known
        function = "nvmlDeviceGetHandleByUUID"
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        except pynvml.NVMLError as error:
            raise_if_gone(function, error.value)
            raise DeviceGone(describe(function, error.value), is_session_void=False) from error
        device = Device(handle=handle, identity=gpu)
        self._devices[gpu.uuid] = device
        return device

    def _find(self, index: int) -> Device:
        """Open one device, and ask who it is unless that is known.

        Raises:
            DeviceGone: it does not answer.
        """
        function = "nvmlDeviceGetHandleByIndex_v2"
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            function = "nvmlDeviceGetUUID"
            uuid = pynvml.nvmlDeviceGetUUID(handle)
        except pynvml.NVMLError as error:
            raise_if_gone(function, error.value)
            raise DeviceGone(describe(function, error.value), is_session_void=False) from error
        except ValueError as error:
            raise DeviceGone(f"{function}: unreadable ({error})", is_session_void=False) from error
        known = self._devices.get(uuid)
        if known is None or known.identity.index != index:
            return Device(handle=handle, identity=read_identity(handle, uuid=uuid, index=index))
        known.identity_rounds_left -= 1
        if known.identity_rounds_left > 0:
            return Device(
                handle=handle,
                identity=known.identity,
                identity_rounds_left=known.identity_rounds_left,
                unsupported=known.unsupported,
            )
        return Device(
            handle=handle,
            identity=read_identity(handle, uuid=uuid, index=index),
            unsupported=known.unsupported,
        )


def _ask(function: Callable[[], T]) -> T | None:
    """Call a function of the library itself whose refusal costs us nothing."""
    try:
        return function()
    except (pynvml.NVMLError, ValueError):
        return None


def _word_cuda_version(number: int | None) -> str | None:
    """Write CUDA's 13010 as 13.1."""
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _word_bounds(handle: pynvml.c_nvmlDevice_t) -> str:
    try:
        minimum, maximum = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
    except pynvml.NVMLError:
        return "outside the device's range"
    return f"outside {minimum / _MILLIWATTS:g} to {maximum / _MILLIWATTS:g} W"
