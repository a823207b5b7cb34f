"""A pure-Python NVML, put where NVIDIA's binding keeps the loaded library.

All of the binding's own wrappers run: they hand over `byref()` objects, and the stand-in writes
into them as the C library would. Values, return codes, missing symbols, hangs and lost devices
can be changed while a driver runs. The devices themselves are in `nvml_stand_in_gpu`.
"""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pynvml

from tests.nvml_stand_in_gpu import (
    INVALID_ARGUMENT,
    SUCCESS,
    StandInGpu,
    answer,
    give,
    give_text,
    number_of,
)


class StandInNvml:
    """The library: what the binding finds at `pynvml.nvmlLib`."""

    def __init__(self, gpus: list[StandInGpu]) -> None:
        self.gpus = gpus
        self.codes: dict[str, int] = {}
        """Return codes by function, whatever the device."""
        self.handle_codes: dict[int, int] = {}
        """Return codes of opening the device of an index."""
        self.count_extra = 0
        """Devices that are counted beyond those of `gpus`."""
        self.missing: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.sessions = 0
        self.open_count = 0
        self.versions = {
            "nvmlSystemGetDriverVersion": "590.48.01",
            "nvmlSystemGetNVMLVersion": "13.590.48.01",
        }
        self.cuda_version = 13010
        self._symbols: dict[str, _Symbol] = {}

    def __getattr__(self, name: str) -> "_Symbol":
        if not name.startswith("nvml") or name in self.missing:
            raise AttributeError(name)
        if name not in self._symbols:
            self._symbols[name] = _Symbol(self, name)
        return self._symbols[name]

    def remove_symbols(self, *names: str) -> None:
        """Be a library that lacks some functions, also for a binding that has found them."""
        self.missing.update(names)
        for name in names:
            pynvml._nvmlGetFunctionPointer_cache.pop(name, None)

    def restore_symbols(self) -> None:
        self.missing.clear()

    def close_by_somebody(self) -> None:
        """Void the session behind the driver's back, as a module reload does."""
        self.open_count = 0

    def call(self, name: str, arguments: tuple[object, ...]) -> object:
        self.calls[name] += 1
        if name == "nvmlErrorString":
            return b"the stand-in's own text"
        if name in self.codes:
            return self.codes[name]
        system = _SYSTEM_CALLS.get(name)
        if system is not None:
            return system(self, *arguments)
        if self.open_count == 0:
            return pynvml.NVML_ERROR_UNINITIALIZED
        if name in _OPENING_CALLS:
            return _OPENING_CALLS[name](self, *arguments)
        gpu = self._find(arguments[0])
        if gpu is None:
            return INVALID_ARGUMENT
        gpu.wait_if_hanging(name)
        if gpu.lost_code is not None:
            return gpu.lost_code
        if name in gpu.codes:
            return gpu.codes[name]
        return answer(gpu, name, arguments[1:])

    def handlenumber_of(self, index: int) -> int:
        # A handle of an earlier session is void, so that nobody can keep one by mistake.
        return self.sessions * 1000 + index + 1

    def _find(self, handle: object) -> StandInGpu | None:
        number = ctypes.cast(handle, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        index = number - self.sessions * 1000 - 1
        return self.gpus[index] if 0 <= index < len(self.gpus) else None


class _Symbol:
    """A function of the library. An object, as the binding sets `restype` on some."""

    restype: object = None

    def __init__(self, library: StandInNvml, name: str) -> None:
        self._library = library
        self._name = name

    def __call__(self, *arguments: object) -> object:
        return self._library.call(self._name, arguments)


def _give_handle(reference: object, number: int) -> int:
    pointer = ctypes.pointer(reference._obj)  # type: ignore[attr-defined]
    ctypes.cast(pointer, ctypes.POINTER(ctypes.c_void_p)).contents.value = number
    return SUCCESS


def _init(library: StandInNvml, _flags: object) -> int:
    if library.open_count == 0:
        library.sessions += 1
    library.open_count += 1
    return SUCCESS


def _shut_down(library: StandInNvml) -> int:
    if library.open_count == 0:
        return pynvml.NVML_ERROR_UNINITIALIZED
    library.open_count -= 1
    return SUCCESS


def _count(library: StandInNvml, reference: object) -> int:
    if library.open_count == 0:
        return pynvml.NVML_ERROR_UNINITIALIZED
    return give(reference, len(library.gpus) + library.count_extra)


def _open_by_index(library: StandInNvml, index: object, reference: object) -> int:
    number = number_of(index)
    if number in library.handle_codes:
        return library.handle_codes[number]
    if number >= len(library.gpus):
        return INVALID_ARGUMENT
    library.gpus[number].wait_if_hanging("nvmlDeviceGetHandleByIndex_v2")
    return _give_handle(reference, library.handlenumber_of(number))


def _open_by_uuid(library: StandInNvml, uuid: object, reference: object) -> int:
    wanted = bytes(number_of(uuid)).decode()  # type: ignore[call-overload]
    for index, gpu in enumerate(library.gpus):
        if gpu.uuid == wanted:
            if gpu.lost_code is not None:
                return gpu.lost_code
            return _give_handle(reference, library.handlenumber_of(index))
    return pynvml.NVML_ERROR_NOT_FOUND


_SYSTEM_CALLS: dict[str, Callable[..., int]] = {
    "nvmlInitWithFlags": _init,
    "nvmlShutdown": _shut_down,
    "nvmlDeviceGetCount_v2": _count,
    "nvmlSystemGetDriverVersion": lambda library, buffer, _: give_text(
        buffer, library.versions["nvmlSystemGetDriverVersion"]
    ),
    "nvmlSystemGetNVMLVersion": lambda library, buffer, _: give_text(
        buffer, library.versions["nvmlSystemGetNVMLVersion"]
    ),
    "nvmlSystemGetCudaDriverVersion_v2": lambda library, reference: give(
        reference, library.cuda_version
    ),
}

_OPENING_CALLS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetHandleByIndex_v2": _open_by_index,
    "nvmlDeviceGetHandleByUUID": _open_by_uuid,
}


@contextmanager
def install(library: StandInNvml | None) -> Iterator[None]:
    """Let the binding use the stand-in, or load the real library if it is ``None``."""
    before = pynvml.nvmlLib, pynvml._nvmlLib_refcount, dict(pynvml._nvmlGetFunctionPointer_cache)
    pynvml.nvmlLib = library
    pynvml._nvmlLib_refcount = 0
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        for gpu in [] if library is None else library.gpus:
            gpu.resume()
        pynvml.nvmlLib, pynvml._nvmlLib_refcount, cache = before
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml._nvmlGetFunctionPointer_cache.update(cache)
