"""Benches: each GPU back end, with what a test needs to make its devices fail.

A new back end is one more function and one more line in `BENCHES`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from esnode.drivers.base import GpuDriver
from esnode.drivers.nvml import NvmlDriver
from esnode.drivers.simulated.machine import CLEAR, HANG, LOST, FaultInjected
from tests import nvml_stand_in_gpu
from tests.nvml_stand_in import StandInNvml, install
from tests.simulated_world import World, happen


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuBench:
    """One back end with at least two healthy devices."""

    driver: GpuDriver
    lose: Callable[[str], None]
    """Let the device of a UUID fall off the bus."""
    hang: Callable[[str], None]
    """Let calls for a device block."""
    resume: Callable[[str], None]
    """Let them return."""
    pass_seconds: Callable[[float], None]
    """Let time go by, in whatever time the back end lives in."""


@contextmanager
def nvml_bench(folder: Path) -> Iterator[GpuBench]:
    """NVML over the stand-in library."""
    gpus = {gpu.uuid: gpu for gpu in nvml_stand_in_gpu.make_gpus(3)}
    energy = "nvmlDeviceGetTotalEnergyConsumption"

    def lose(uuid: str) -> None:
        gpus[uuid].lost_code = nvml_stand_in_gpu.LOST

    def pass_seconds(seconds: float) -> None:
        for gpu in gpus.values():
            gpu.scalars[energy] += round(seconds * gpu.scalars["nvmlDeviceGetPowerUsage"])

    with install(StandInNvml(list(gpus.values()))):
        yield GpuBench(
            driver=NvmlDriver(procfs_path=folder),
            lose=lose,
            hang=lambda uuid: gpus[uuid].hang("nvmlDeviceGetUtilizationRates"),
            resume=lambda uuid: gpus[uuid].resume(),
            pass_seconds=pass_seconds,
        )


@contextmanager
def simulated_bench(folder: Path) -> Iterator[GpuBench]:
    """The simulated machine."""
    world = World()
    path = folder / "machine"
    store = world.store(path, "h100x2")

    def break_gpu(kind: str) -> Callable[[str], None]:
        return lambda uuid: happen(store, FaultInjected(gpu=uuid, kind=kind))

    def pass_seconds(seconds: float) -> None:
        world.now_seconds += seconds

    yield GpuBench(
        driver=world.gpus(path, "h100x2"),
        lose=break_gpu(LOST),
        hang=break_gpu(HANG),
        resume=break_gpu(CLEAR),
        pass_seconds=pass_seconds,
    )


BENCHES: Mapping[str, Callable[[Path], AbstractContextManager[GpuBench]]] = {
    "nvml": nvml_bench,
    "simulated": simulated_bench,
}
