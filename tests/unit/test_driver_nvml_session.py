"""How the NVML back end opens, loses, re-opens and shares its session."""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from esnode.drivers.base import DeviceFault, DriverUnavailable
from esnode.drivers.nvml import NvmlDriver
from esnode.drivers.nvml.driver import REOPEN_ROUNDS
from esnode.readings.gpu import GpuIdentity
from tests.nvml_stand_in import StandInNvml, install
from tests.nvml_stand_in_gpu import LOST, make_gpus

WAIT_SECONDS = 10.0


@pytest.fixture
def library() -> Iterator[StandInNvml]:
    stand_in = StandInNvml(make_gpus(3))
    with install(stand_in):
        yield stand_in


class Reader(threading.Thread):
    """Reads one device in a thread of its own, as the agent does."""

    def __init__(self, driver: NvmlDriver, gpu: GpuIdentity) -> None:
        super().__init__(daemon=True)
        self._driver = driver
        self._gpu = gpu
        self.outcome: object = None

    def run(self) -> None:
        try:
            self.outcome = self._driver.read(self._gpu)
        except (DeviceFault, DriverUnavailable) as error:
            self.outcome = error


def test_nothing_is_imported_before_the_first_discovery() -> None:
    script = (
        "import sys\n"
        "from esnode.drivers.nvml import NvmlDriver\n"
        "driver = NvmlDriver()\n"
        "driver.release()\n"
        "print('pynvml' in sys.modules)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"


def test_one_session_serves_all_discoveries_and_reads(library: StandInNvml) -> None:
    driver = NvmlDriver()

    for _ in range(5):
        for gpu in driver.discover().gpus:
            driver.read(gpu)

    assert library.calls["nvmlInitWithFlags"] == 1
    assert library.calls["nvmlShutdown"] == 0
    assert library.calls["nvmlDeviceGetName"] == 3


UNAVAILABLE = [
    pytest.param(pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "kernel module is not loaded", id="module"),
    pytest.param(pynvml.NVML_ERROR_NO_PERMISSION, "no permission to open", id="permission"),
    pytest.param(pynvml.NVML_ERROR_UNKNOWN, "UNKNOWN (999)", id="unknown"),
    pytest.param(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "libnvidia-ml.so.1 not found", id="library"),
]


@pytest.mark.parametrize(("code", "line"), UNAVAILABLE)
def test_a_driver_that_does_not_open_says_what_would_help(
    library: StandInNvml, code: int, line: str
) -> None:
    library.codes["nvmlInitWithFlags"] = code

    with pytest.raises(DriverUnavailable) as caught:
        NvmlDriver().discover()

    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_version_mismatch_shows_both_versions(library: StandInNvml, tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"
    )
    library.codes["nvmlInitWithFlags"] = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH

    with pytest.raises(DriverUnavailable) as caught:
        NvmlDriver(procfs_path=tmp_path).discover()

    assert "library 13.590.48.01, module 535.54.03" in str(caught.value)
    assert "restart esnode" in str(caught.value)


def test_no_library_on_this_machine_is_one_line() -> None:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        driver = NvmlDriver()
    else:
        pytest.skip("this machine has an NVIDIA driver")

    with install(None), pytest.raises(DriverUnavailable) as caught:
        driver.discover()

    assert str(caught.value).startswith("libnvidia-ml.so.1 not found: no NVIDIA driver")


def test_a_driver_loaded_later_is_found(library: StandInNvml) -> None:
    driver = NvmlDriver()
    library.codes["nvmlInitWithFlags"] = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    with pytest.raises(DriverUnavailable):
        driver.discover()
    library.codes.clear()

    inventory = driver.discover()

    assert len(inventory.gpus) == 3


def test_no_devices_is_an_answer(library: StandInNvml) -> None:
    library.gpus.clear()

    inventory = NvmlDriver().discover()

    assert (inventory.gpus, inventory.found_count) == ((), 0)


def test_a_count_that_fails_makes_the_driver_unavailable(library: StandInNvml) -> None:
    library.codes["nvmlDeviceGetCount_v2"] = pynvml.NVML_ERROR_UNKNOWN

    with pytest.raises(DriverUnavailable, match="nvmlDeviceGetCount_v2: UNKNOWN"):
        NvmlDriver().discover()


@pytest.mark.parametrize(
    ("code", "word"),
    [
        pytest.param(LOST, "GPU_IS_LOST (15)", id="lost"),
        pytest.param(pynvml.NVML_ERROR_NO_PERMISSION, "NO_PERMISSION (4)", id="permission"),
        pytest.param(pynvml.NVML_ERROR_UNKNOWN, "UNKNOWN (999)", id="unknown"),
    ],
)
def test_a_device_that_does_not_open_leaves_the_others(
    library: StandInNvml, code: int, word: str
) -> None:
    library.handle_codes[1] = code

    inventory = NvmlDriver().discover()

    assert [gpu.index for gpu in inventory.gpus] == [0, 2]
    assert inventory.found_count == 3
    assert [absence.what for absence in inventory.lost] == ["gpu:1"]
    assert inventory.lost[0].reason == f"nvmlDeviceGetHandleByIndex_v2: {word}"


def test_a_device_lost_at_its_first_question_leaves_the_others(library: StandInNvml) -> None:
    library.gpus[2].lost_code = LOST

    inventory = NvmlDriver().discover()

    assert [gpu.index for gpu in inventory.gpus] == [0, 1]
    assert inventory.lost[0].reason == "nvmlDeviceGetUUID: GPU_IS_LOST (15)"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(LOST, id="lost"),
        pytest.param(pynvml.NVML_ERROR_RESET_REQUIRED, id="reset-required"),
        pytest.param(pynvml.NVML_ERROR_GPU_NOT_FOUND, id="not-found"),
    ],
)
def test_a_lost_device_is_a_fault_of_its_own(library: StandInNvml, code: int) -> None:
    driver = NvmlDriver()
    first, second, _ = driver.discover().gpus
    library.gpus[0].lost_code = code

    with pytest.raises(DeviceFault) as caught:
        driver.read(first)

    assert caught.value.is_lost
    assert f"({code})" in caught.value.reason
    assert driver.read(second).temperature_celsius == 41.0


def test_a_reset_device_answers_again_after_a_fresh_session(library: StandInNvml) -> None:
    driver = NvmlDriver()
    first = driver.discover().gpus[0]
    library.gpus[0].lost_code = LOST
    with pytest.raises(DeviceFault):
        driver.read(first)
    library.gpus[0].lost_code = None

    driver.discover()

    assert library.sessions == 2
    assert driver.read(first).temperature_celsius == 41.0


def test_a_device_that_stays_lost_costs_few_fresh_sessions(library: StandInNvml) -> None:
    driver = NvmlDriver()
    library.gpus[0].lost_code = LOST

    for _ in range(2 * REOPEN_ROUNDS):
        driver.discover()

    assert library.sessions == 3
    assert library.open_count == 1


def test_a_session_closed_behind_our_back_is_opened_anew(library: StandInNvml) -> None:
    driver = NvmlDriver()
    first = driver.discover().gpus[0]
    library.close_by_somebody()

    with pytest.raises(DeviceFault) as caught:
        driver.read(first)
    with pytest.raises(DriverUnavailable):
        driver.read(first)
    again = driver.discover()

    assert caught.value.is_lost
    assert driver.read(again.gpus[0]).temperature_celsius == 41.0
    assert library.open_count == 1


def test_a_discovery_notices_a_void_session_by_itself(library: StandInNvml) -> None:
    driver = NvmlDriver()
    driver.discover()
    library.close_by_somebody()

    inventory = driver.discover()

    assert len(inventory.gpus) == 3
    assert library.calls["nvmlInitWithFlags"] == 2


def test_a_library_that_closes_at_once_is_unavailable(library: StandInNvml) -> None:
    library.codes["nvmlDeviceGetCount_v2"] = pynvml.NVML_ERROR_UNINITIALIZED

    with pytest.raises(DriverUnavailable, match="closes as soon as it opens"):
        NvmlDriver().discover()


def test_release_closes_the_library_and_discovery_opens_it(library: StandInNvml) -> None:
    driver = NvmlDriver()
    first = driver.discover().gpus[0]

    driver.release()
    closed = library.open_count
    with pytest.raises(DriverUnavailable):
        driver.read(first)
    driver.release()
    driver.discover()

    assert closed == 0
    assert library.open_count == 1
    assert driver.read(first).temperature_celsius == 41.0


def test_the_number_of_devices_may_change(library: StandInNvml) -> None:
    driver = NvmlDriver()
    before = driver.discover()
    gone = library.gpus.pop()

    after = driver.discover()

    assert [gpu.uuid for gpu in before.gpus][-1] == gone.uuid
    assert len(after.gpus) == after.found_count == 2
    with pytest.raises(DeviceFault) as caught:
        driver.read(before.gpus[-1])
    assert caught.value.is_lost
    assert "NOT_FOUND" in caught.value.reason


def test_a_device_under_a_new_index_keeps_its_uuid(library: StandInNvml) -> None:
    driver = NvmlDriver()
    driver.discover()
    library.gpus.reverse()

    inventory = driver.discover()

    assert [(gpu.index, gpu.uuid[4]) for gpu in inventory.gpus] == [(0, "2"), (1, "1"), (2, "0")]
    library.gpus[2].tables["nvmlDeviceGetTemperature"][(0,)] = 77
    assert driver.read(inventory.gpus[2]).temperature_celsius == 77.0


def test_a_hanging_device_blocks_its_own_call_only(library: StandInNvml) -> None:
    driver = NvmlDriver()
    first, second, _ = driver.discover().gpus
    library.gpus[0].hang("nvmlDeviceGetClockInfo")
    reader = Reader(driver, first)
    reader.start()
    assert library.gpus[0].arrived.wait(WAIT_SECONDS)

    other = driver.read(second)
    inventory = driver.discover()
    driver.set_power_limit(second, 500)

    assert other.temperature_celsius == 41.0
    assert len(inventory.gpus) == 3
    assert reader.is_alive()
    library.gpus[0].resume()
    reader.join(WAIT_SECONDS)
    assert not isinstance(reader.outcome, Exception)


def test_release_during_a_hang_closes_when_the_call_returns(library: StandInNvml) -> None:
    driver = NvmlDriver()
    first = driver.discover().gpus[0]
    library.gpus[0].hang("nvmlDeviceGetClockInfo")
    reader = Reader(driver, first)
    reader.start()
    assert library.gpus[0].arrived.wait(WAIT_SECONDS)

    driver.release()
    while_hanging = library.open_count
    library.gpus[0].resume()
    reader.join(WAIT_SECONDS)

    assert while_hanging == 1
    assert library.open_count == 0


def test_a_lost_device_beside_a_hanging_one_leaves_the_session_alone(
    library: StandInNvml,
) -> None:
    driver = NvmlDriver()
    first, second, third = driver.discover().gpus
    library.gpus[0].hang("nvmlDeviceGetClockInfo")
    reader = Reader(driver, first)
    reader.start()
    assert library.gpus[0].arrived.wait(WAIT_SECONDS)
    library.gpus[1].lost_code = LOST
    with pytest.raises(DeviceFault):
        driver.read(second)

    inventory = driver.discover()

    assert library.sessions == 1
    assert [gpu.index for gpu in inventory.gpus] == [0, 2]
    assert driver.read(third).temperature_celsius == 41.0
    library.gpus[0].resume()
    reader.join(WAIT_SECONDS)
    driver.discover()
    assert library.sessions == 2
