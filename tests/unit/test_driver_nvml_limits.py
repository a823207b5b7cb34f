"""How the NVML back end sets a power limit, and words why it could not."""

from collections.abc import Iterator

import pynvml
import pytest

from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.drivers.nvml import NvmlDriver
from tests.nvml_stand_in import StandInNvml, install
from tests.nvml_stand_in_gpu import LOST, NOT_SUPPORTED, make_gpus


@pytest.fixture
def library() -> Iterator[StandInNvml]:
    stand_in = StandInNvml(make_gpus(3))
    with install(stand_in):
        yield stand_in


@pytest.mark.parametrize(
    ("watts", "code", "line"),
    [
        pytest.param(100, None, "100 W is outside 200 to 700 W", id="low"),
        pytest.param(701, None, "701 W is outside 200 to 700 W", id="high"),
        pytest.param(0, None, "0 W is no power limit", id="zero"),
        pytest.param(-5, None, "-5 W is no power limit", id="negative"),
        pytest.param(5_000_000, None, "5000000 W is no power limit", id="wraps"),
        pytest.param(400, pynvml.NVML_ERROR_NO_PERMISSION, "needs root", id="permission"),
        pytest.param(400, NOT_SUPPORTED, "takes no power limit", id="unsupported"),
    ],
)
def test_a_refused_power_limit_leaves_the_old_one(
    library: StandInNvml, watts: int, code: int | None, line: str
) -> None:
    driver = NvmlDriver()
    gpu = driver.discover().gpus[0]
    if code is not None:
        library.gpus[0].codes["nvmlDeviceSetPowerManagementLimit"] = code

    with pytest.raises(PowerLimitRefused) as caught:
        driver.set_power_limit(gpu, watts)

    assert line in str(caught.value)
    assert driver.read(gpu).power_limit_enforced_watts == 700.0


@pytest.mark.parametrize(
    ("code", "is_lost"),
    [
        pytest.param(LOST, True, id="lost"),
        pytest.param(pynvml.NVML_ERROR_TIMEOUT, False, id="timeout"),
    ],
)
def test_a_limit_without_an_answer_is_a_fault(
    library: StandInNvml, code: int, is_lost: bool
) -> None:
    driver = NvmlDriver()
    gpu = driver.discover().gpus[0]
    library.gpus[0].codes["nvmlDeviceSetPowerManagementLimit"] = code

    with pytest.raises(DeviceFault) as caught:
        driver.set_power_limit(gpu, 400)

    assert caught.value.is_lost is is_lost


def test_a_limit_that_is_taken_shows_in_the_next_reading(library: StandInNvml) -> None:
    driver = NvmlDriver()
    gpu = driver.discover().gpus[0]

    driver.set_power_limit(gpu, 450)

    reading = driver.read(gpu)
    assert reading.power_limit_requested_watts == 450.0
    assert reading.power_limit_enforced_watts == 450.0
    assert reading.power_limit_default_watts == 700.0


def test_a_limit_without_a_session_is_refused(library: StandInNvml) -> None:
    driver = NvmlDriver()
    gpu = driver.discover().gpus[0]
    driver.release()

    with pytest.raises(PowerLimitRefused, match="not open"):
        driver.set_power_limit(gpu, 450)
