"""What NVML's return codes mean to us, and how we word them.

Its own file because every other module of the package needs it, and none of the others is needed
by it. It knows codes and lines of text, no device.
"""

import pynvml

from esnode.drivers.base import DriverUnavailable
from esnode.drivers.nvml.gone import DeviceGone

UNSUPPORTED_CODES = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_VGPU_ECC_NOT_SUPPORTED,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_DEPRECATED,
    }
)
"""Answers that will hardly change while this driver is loaded."""

SESSION_CODES = frozenset({pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED})
"""The whole session is void: the driver was unloaded, or somebody closed the library."""

LOST_CODES = frozenset(
    {
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_GPU_NOT_FOUND,
    }
)
"""One device has fallen off the bus, or needs a reset: its handle is void."""

_ADVICE = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        "libnvidia-ml.so.1 not found: no NVIDIA driver on this machine, or its library is not "
        "visible here (in a container, ask its runtime for the `utility` capability)"
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "the NVIDIA kernel module is not loaded, though its library is installed: "
        "try `modprobe nvidia` and read `dmesg`"
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "the NVIDIA library and the loaded kernel module are of different versions (a driver "
        "upgrade without a reload): reload the module or reboot, then restart esnode"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        "no permission to open the NVIDIA devices: the agent's user needs read and write access "
        "to /dev/nvidiactl and /dev/nvidia*"
    ),
}

_CODE_NAMES: dict[int, str] = {
    value: name.removeprefix("NVML_ERROR_")
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(value, int)
}


def name_code(code: int) -> str:
    """Word a return code as NVML's own headers do, e.g. ``NOT_SUPPORTED (3)``."""
    return f"{_CODE_NAMES.get(code, 'unknown code')} ({code})"


def describe(function: str, code: int) -> str:
    """Say which function gave which code, in one line."""
    return f"{function}: {name_code(code)}"


def raise_if_gone(function: str, code: int) -> None:
    """Stop the whole read if the code voids the device's handle rather than one value.

    Raises:
        DeviceGone: it does.
    """
    if code in LOST_CODES or code in SESSION_CODES:
        raise DeviceGone(describe(function, code), is_session_void=code in SESSION_CODES)


def explain_unavailable(function: str, code: int, details: str = "") -> DriverUnavailable:
    """Word why the whole driver cannot be used, and what would help."""
    advice = _ADVICE.get(code, "NVML does not open")
    return DriverUnavailable(
        f"{advice}{details} [{describe(function, code)}]",
        is_absent=code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    )
