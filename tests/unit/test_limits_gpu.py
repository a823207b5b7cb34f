"""GPUs as limited devices, over both back ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from esnode.drivers.base import DeviceFault, DriverUnavailable, GpuDriver, PowerLimitRefused
from esnode.drivers.limits import GpuLimits
from esnode.drivers.nvml import NvmlDriver
from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuReading
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, LimitRange
from tests import nvml_stand_in_gpu
from tests.gpu_benches import BENCHES, GpuBench
from tests.nvml_stand_in import StandInNvml, install


@pytest.fixture(params=[pytest.param(name, id=name) for name in BENCHES])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GpuBench]:
    with BENCHES[request.param](tmp_path) as made:
        yield made


def test_every_gpu_is_a_device_with_the_range_of_its_driver(bench: GpuBench) -> None:
    limits = GpuLimits(bench.driver)

    found = limits.discover()

    assert found.devices == tuple(gpu.uuid for gpu in bench.driver.discover().gpus)
    assert limits.limit_range(found.devices[0]) == LimitRange(
        device=found.devices[0],
        kind="gpu",
        minimum_watts=200,
        maximum_watts=700,
        default_watts=700,
    )


def test_a_limit_is_set_and_in_force_after_settling(bench: GpuBench) -> None:
    limits = GpuLimits(bench.driver)
    device, other = limits.discover().devices[:2]

    limits.set_limit(device, 400)
    bench.pass_seconds(3.0)

    assert limits.enforced(device) == EnforcedLimit(
        device=device, enforced_watts=400, requested_watts=400
    )
    assert limits.enforced(other).enforced_watts == 700


def test_what_is_in_force_costs_two_calls_of_the_library(tmp_path: Path) -> None:
    library = StandInNvml(nvml_stand_in_gpu.make_gpus(2))
    with install(library):
        limits = GpuLimits(NvmlDriver(procfs_path=tmp_path))
        device = limits.discover().devices[0]
        before = library.calls.copy()

        limits.enforced(device)

    assert dict(library.calls - before) == {
        "nvmlDeviceGetPowerManagementLimit": 1,
        "nvmlDeviceGetEnforcedPowerLimit": 1,
    }


def test_a_device_can_be_asked_before_any_discovery(bench: GpuBench) -> None:
    device = bench.driver.discover().gpus[0].uuid
    bench.driver.release()

    assert GpuLimits(bench.driver).enforced(device).enforced_watts == 700


def test_a_driver_that_was_released_is_opened_again(bench: GpuBench) -> None:
    limits = GpuLimits(bench.driver)
    device = limits.discover().devices[0]
    bench.driver.release()

    limits.set_limit(device, 300)
    bench.pass_seconds(3.0)

    assert limits.enforced(device).enforced_watts == 300


def test_a_limit_out_of_range_is_refused_by_the_device(bench: GpuBench) -> None:
    limits = GpuLimits(bench.driver)
    device = limits.discover().devices[0]

    with pytest.raises(PowerLimitRefused, match="199"):
        limits.set_limit(device, 199)


def test_a_lost_device_is_a_fault(bench: GpuBench) -> None:
    limits = GpuLimits(bench.driver)
    device = limits.discover().devices[0]
    bench.lose(device)

    with pytest.raises(DeviceFault):
        limits.enforced(device)
    with pytest.raises(DeviceFault):
        limits.set_limit(device, 400)
    assert device not in limits.discover().devices


def test_a_device_that_was_never_there_is_a_fault(bench: GpuBench) -> None:
    with pytest.raises(DeviceFault, match="no GPU GPU-nowhere answers"):
        GpuLimits(bench.driver).enforced("GPU-nowhere")


class OddDriver:
    """A driver that gives one GPU with the given limits, or cannot be opened."""

    name = "odd"

    def __init__(self, reading: GpuReading | None) -> None:
        self._reading = reading

    def discover(self) -> GpuInventory:
        if self._reading is None:
            raise DriverUnavailable("no driver here")
        return GpuInventory(driver=self.name, gpus=(self._reading.identity,))

    def read(self, gpu: GpuIdentity) -> GpuReading:
        assert self._reading is not None
        return self._reading

    def read_power_limit(self, gpu: GpuIdentity) -> EnforcedLimit:
        return EnforcedLimit(device=gpu.uuid, enforced_watts=None, requested_watts=None)

    def set_power_limit(self, gpu: GpuIdentity, watts: int) -> None:
        raise PowerLimitRefused("never")

    def release(self) -> None:
        return


GPU = GpuIdentity(uuid="GPU-1", index=0, name="gpu", vendor="nvidia")


def test_a_driver_that_cannot_be_opened_is_an_absence() -> None:
    driver: GpuDriver = OddDriver(None)

    found = GpuLimits(driver).discover()

    assert found.devices == ()
    assert found.absent == (Absence(what="limits:odd", reason="no driver here"),)
    with pytest.raises(DeviceFault, match="no driver here"):
        GpuLimits(driver).enforced("GPU-1")


def test_watts_with_fractions_are_rounded_up() -> None:
    reading = GpuReading(
        identity=GPU,
        power_limit_min_watts=100.5,
        power_limit_max_watts=349.001,
    )
    limits = GpuLimits(OddDriver(reading))

    answer = limits.limit_range("GPU-1")

    assert isinstance(answer, LimitRange)
    assert (answer.minimum_watts, answer.maximum_watts) == (101, 350)


def test_what_is_in_force_is_rounded_up_to_whole_watts(tmp_path: Path) -> None:
    gpus = nvml_stand_in_gpu.make_gpus(1)
    gpus[0].scalars["nvmlDeviceGetEnforcedPowerLimit"] = 300_001
    gpus[0].scalars["nvmlDeviceGetPowerManagementLimit"] = 300_000
    with install(StandInNvml(gpus)):
        limits = GpuLimits(NvmlDriver(procfs_path=tmp_path))

        read = limits.enforced(limits.discover().devices[0])

    assert (read.enforced_watts, read.requested_watts) == (301, 300)


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        pytest.param(
            GpuReading(
                identity=GPU,
                absent=(Absence(what="power_limit_max_watts", reason="not supported [3]"),),
            ),
            "unknown: not supported [3]",
            id="not-given",
        ),
        pytest.param(
            GpuReading(identity=GPU, power_limit_min_watts=0.0, power_limit_max_watts=0.0),
            "no usable range",
            id="nought",
        ),
        pytest.param(
            GpuReading(identity=GPU, power_limit_min_watts=500.0, power_limit_max_watts=400.0),
            "no usable range",
            id="upside-down",
        ),
    ],
)
def test_a_device_without_a_range_says_why(reading: GpuReading, reason: str) -> None:
    answer = GpuLimits(OddDriver(reading)).limit_range("GPU-1")

    assert isinstance(answer, Absence)
    assert reason in answer.reason
    assert GpuLimits(OddDriver(reading)).enforced("GPU-1").enforced_watts is None
