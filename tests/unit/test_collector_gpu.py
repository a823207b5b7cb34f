"""Which GPUs are watched, and what becomes of a driver's failures."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.gpu import GpuCollector, keep_largest, select_visible
from esnode.drivers.base import DeviceFault, DriverUnavailable
from esnode.drivers.nvml import NvmlDriver
from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuProcess, GpuReading
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit
from tests.nvml_stand_in import StandInNvml, install
from tests.nvml_stand_in_gpu import LOST, make_gpus


def make_identity(index: int, uuid: str) -> GpuIdentity:
    return GpuIdentity(uuid=uuid, index=index, name="H100", vendor="nvidia")


GPUS = (
    make_identity(0, "GPU-5f3c0000-aaaa"),
    make_identity(1, "GPU-5f3d0000-bbbb"),
    make_identity(2, "GPU-77770000-cccc"),
)


def make_process(pid: int, memory_used_bytes: int | None) -> GpuProcess:
    return GpuProcess(
        pid=pid, kind="compute", name=f"job-{pid}", memory_used_bytes=memory_used_bytes
    )


@dataclass
class ScriptedDriver:
    """A driver of `GPUS` that answers as the test says."""

    name: str = "scripted"
    lost: tuple[Absence, ...] = ()
    processes: tuple[GpuProcess, ...] | None = ()
    fail: Callable[[], None] = field(default=lambda: None)

    def discover(self) -> GpuInventory:
        self.fail()
        return GpuInventory(driver=self.name, gpus=GPUS, lost=self.lost, found_count=4)

    def read(self, gpu: GpuIdentity) -> GpuReading:
        self.fail()
        return GpuReading(identity=gpu, processes=self.processes)

    def read_power_limit(self, gpu: GpuIdentity) -> EnforcedLimit:
        self.fail()
        return EnforcedLimit(device=gpu.uuid, enforced_watts=None, requested_watts=None)

    def set_power_limit(self, gpu: GpuIdentity, watts: int) -> None:
        self.fail()

    def release(self) -> None:
        self.fail()


def fail_with(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("spec", "indices"),
    [
        pytest.param(None, [0, 1, 2], id="unset"),
        pytest.param("", [0, 1, 2], id="empty"),
        pytest.param("all", [0, 1, 2], id="all"),
        pytest.param(" ALL ", [0, 1, 2], id="all-shouted"),
        pytest.param("1", [1], id="index"),
        pytest.param("001", [1], id="index-with-noughts"),
        pytest.param("2,0", [0, 2], id="indices-in-driver-order"),
        pytest.param(" 2 , 0 ,", [0, 2], id="blanks"),
        pytest.param("1,1,GPU-5f3d0000-bbbb", [1], id="named-twice"),
        pytest.param("GPU-77770000-cccc", [2], id="uuid"),
        pytest.param("gpu-7777", [2], id="beginning"),
        pytest.param("GPU-5f3c,2", [0, 2], id="mixed"),
    ],
)
def test_visible_devices_choose_gpus(spec: str | None, indices: list[int]) -> None:
    selection = select_visible(GPUS, spec)

    assert [gpu.index for gpu in selection.gpus] == indices
    assert selection.absent == ()


@pytest.mark.parametrize("spec", ["none", "void", " Void "])
def test_none_watches_none_and_says_how_to_watch_all(spec: str) -> None:
    selection = select_visible(GPUS, spec)

    (absence,) = selection.absent
    assert (selection.gpus, absence.what) == ((), "visible_devices")
    assert absence.reason == (
        f"{spec.strip()!r} watches no GPU; set gpu_visible_devices to all to watch every one"
    )


@pytest.mark.parametrize(
    ("spec", "indices", "what", "reason"),
    [
        pytest.param("7", [], "7", "no GPU that answers", id="no-such-index"),
        pytest.param("-1", [], "-1", "no GPU that answers", id="negative"),
        pytest.param("0,9", [0], "9", "no GPU that answers", id="one-of-two"),
        pytest.param("GPU-1234", [], "GPU-1234", "no GPU that answers", id="no-such-uuid"),
        pytest.param("GPU-5f3", [], "GPU-5f3", "fits 2 GPUs", id="ambiguous"),
        pytest.param("MIG-5f3c/1/0,1", [1], "MIG-5f3c/1/0", "MIG instances", id="mig"),
        pytest.param("9" * 5000, [], "9" * 5000, "no GPU that answers", id="very-long"),
        pytest.param("0,all", [0], "all", "no GPU that answers", id="all-in-a-list"),
        pytest.param("²", [], "²", "no GPU that answers", id="no-plain-digit"),
    ],
)
def test_an_entry_that_names_no_gpu_is_told_and_selects_nothing(
    spec: str, indices: list[int], what: str, reason: str
) -> None:
    selection = select_visible(GPUS, spec)

    assert [gpu.index for gpu in selection.gpus] == indices
    assert [absence.what for absence in selection.absent] == [f"visible_devices:{what}"]
    assert reason in selection.absent[0].reason


def test_a_list_of_nothing_selects_nothing() -> None:
    selection = select_visible(GPUS, " , ")

    assert selection.gpus == ()
    assert [absence.what for absence in selection.absent] == ["visible_devices"]


def test_a_full_uuid_wins_over_a_longer_one_that_begins_with_it() -> None:
    gpus = (make_identity(0, "GPU-1"), make_identity(1, "GPU-12"))

    selection = select_visible(gpus, "GPU-1")

    assert [gpu.index for gpu in selection.gpus] == [0]


@pytest.mark.parametrize(
    ("visible_devices", "is_lost"),
    [
        pytest.param(None, True, id="all-are-watched"),
        pytest.param("0,3", True, id="named-by-its-index"),
        pytest.param("0,1", False, id="others-are-named"),
        pytest.param("GPU-ffff", True, id="perhaps-named-by-its-uuid"),
        pytest.param("none", False, id="none-is-watched"),
    ],
)
def test_a_lost_device_counts_when_it_is_one_to_be_watched(
    visible_devices: str | None, is_lost: bool
) -> None:
    loss = Absence(what="gpu:3", reason="GPU_IS_LOST (15)")
    collector = GpuCollector(ScriptedDriver(lost=(loss,)), visible_devices=visible_devices)

    part = collector.discover().part

    assert (loss in part.lost) is is_lost
    assert any(absence.what == "gpu:3" for absence in part.absent) is not is_lost


def test_discovery_gives_the_chosen_targets_and_tells_of_the_rest() -> None:
    lost = (Absence(what="gpu:3", reason="GPU_IS_LOST (15)"),)
    collector = GpuCollector(ScriptedDriver(lost=lost), visible_devices="0,3")

    found = collector.discover()

    assert found.targets == {GPUS[0].uuid: GPUS[0]}
    assert found.part.gpus == GPUS[:1]
    assert found.part.lost == lost
    assert found.part.found_count == 4
    assert [absence.what for absence in found.part.absent] == ["visible_devices:3"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(DriverUnavailable("libnvidia-ml.so.1 not found"), id="unavailable"),
        pytest.param(DeviceFault("GPU-1: lost", is_lost=True), id="fault"),
    ],
)
def test_a_driver_s_failure_is_the_collector_s_one_line(error: Exception) -> None:
    collector = GpuCollector(ScriptedDriver(fail=fail_with(error)))

    with pytest.raises(CollectFailed) as caught:
        collector.read(GPUS[0])

    assert str(caught.value) == str(error)


def test_an_unavailable_driver_fails_discovery_with_its_line() -> None:
    driver = ScriptedDriver(fail=fail_with(DriverUnavailable("no module")))

    with pytest.raises(CollectFailed, match="no module"):
        GpuCollector(driver).discover()


def test_the_processes_with_most_memory_are_kept() -> None:
    processes = [
        make_process(1, None),
        make_process(2, 50),
        make_process(3, 900),
        make_process(4, 50),
        make_process(5, 0),
    ]

    kept = keep_largest(processes, 4)

    assert [process.pid for process in kept] == [3, 2, 4, 5]


def test_a_cut_list_of_processes_says_so() -> None:
    driver = ScriptedDriver(processes=tuple(make_process(pid, pid) for pid in range(1, 13)))

    reading = GpuCollector(driver).read(GPUS[0])

    assert reading.processes is not None
    assert reading.process_count == 12
    assert [process.pid for process in reading.processes] == list(range(12, 2, -1))
    assert reading.absent == (
        Absence(what="processes", reason="the 10 with most memory are kept, 2 more are not"),
    )


@pytest.mark.parametrize(
    "processes", [pytest.param(None, id="unknown"), pytest.param((), id="none")]
)
def test_no_processes_and_unknown_processes_stay_what_they_are(
    processes: tuple[GpuProcess, ...] | None,
) -> None:
    reading = GpuCollector(ScriptedDriver(processes=processes)).read(GPUS[0])

    assert reading.processes == processes
    assert reading.process_count == (None if processes is None else 0)
    assert reading.absent == ()


def test_the_collector_reads_nvml() -> None:
    library = StandInNvml(make_gpus(2))
    with install(library):
        collector = GpuCollector(NvmlDriver(), visible_devices="1")
        found = collector.discover()
        (target,) = found.targets.values()

        reading = collector.read(target)
        library.gpus[1].lost_code = LOST
        with pytest.raises(CollectFailed, match="GPU_IS_LOST"):
            collector.read(target)

    assert reading.temperature_celsius == 41.0
    assert found.part.found_count == 2
