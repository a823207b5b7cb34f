from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.cpu import CpuCollector, parse_loadavg, parse_pressure, parse_stat
from esnode.collectors.root import HostRoot
from esnode.readings.host import CPU_MODES, Absence, PressureReading, TemperatureReading
from tests.host_trees import FOLDER, root_of, write_chip, write_tree

STAT = """\
cpu  300 2 100 9000 50 1 30 7 4 3
cpu0 100 1 60 4000 30 1 10 4 2 1
cpu1 200 1 40 5000 20 0 20 3 2 2
intr 8885917 17 0 0 79281 0
ctxt 38014093
btime 1418183276
processes 26442
procs_running 2
procs_blocked 0
softirq 5057579 250191 1481983
"""

PROC = {
    "proc/stat": STAT,
    "proc/loadavg": "0.21 0.37 0.39 1/719 19737\n",
    "proc/pressure/cpu": (
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=14036781\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    ),
    "proc/pressure/io": (
        "some avg10=0.18 avg60=0.34 avg300=0.10 total=159886802\n"
        "full avg10=0.18 avg60=0.34 avg300=0.10 total=159229614\n"
    ),
    "proc/pressure/memory": (
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    ),
    "proc/pressure/irq": "full avg10=0.00 avg60=0.00 avg300=0.00 total=8494",
}


def collector(tree: Path) -> CpuCollector:
    return CpuCollector(root_of(tree), ticks_per_second=100)


def whats(absent: tuple[Absence, ...]) -> list[str]:
    return [absence.what for absence in absent]


def test_a_whole_tree_is_read_with_nothing_but_temperatures_absent(tmp_path: Path) -> None:
    reading = collector(write_tree(tmp_path, PROC)).read()

    assert (reading.load1, reading.load5, reading.load15) == (0.21, 0.37, 0.39)
    assert reading.boot_time_seconds == 1418183276.0
    assert reading.mode_seconds == (3.0, 0.02, 1.0, 90.0, 0.5, 0.01, 0.3, 0.07, 0.04, 0.03)
    assert reading.cpu_mode_seconds == (
        (0, (1.0, 0.01, 0.6, 40.0, 0.3, 0.01, 0.1, 0.04, 0.02, 0.01)),
        (1, (2.0, 0.01, 0.4, 50.0, 0.2, 0.0, 0.2, 0.03, 0.02, 0.02)),
    )
    assert reading.interrupts_total == 8885917
    assert reading.context_switches_total == 38014093
    assert reading.forks_total == 26442
    assert (reading.processes_running, reading.processes_blocked) == (2, 0)
    assert whats(reading.absent) == ["temperatures"]


def test_pressure_is_in_seconds_and_leaves_out_the_meaningless_full_of_the_cpu(
    tmp_path: Path,
) -> None:
    reading = collector(write_tree(tmp_path, PROC)).read()

    assert [(p.resource, p.kind, p.stalled_seconds_total) for p in reading.pressure] == [
        ("cpu", "some", 14.036781),
        ("io", "some", 159.886802),
        ("io", "full", 159.229614),
        ("memory", "some", 0.0),
        ("memory", "full", 0.0),
        ("irq", "full", 0.008494),
    ]


def test_the_recorded_host_gives_its_known_values(linux_host_tree: Path) -> None:
    reading = collector(linux_host_tree).read()

    assert reading.load1 == 0.21
    assert reading.mode_seconds is not None
    assert dict(zip(CPU_MODES, reading.mode_seconds, strict=True))["idle"] == 89790.04
    assert dict(reading.cpu_mode_seconds)[7][:4] == (290.98, 2.68, 101.64, 11392.82)
    assert [cpu for cpu, _ in reading.cpu_mode_seconds] == list(range(8))
    assert reading.interrupts_total == 8885917
    assert len(reading.pressure) == 6
    assert len(reading.temperatures) == 10
    assert reading.absent == ()


def test_two_sockets_of_the_recorded_host_do_not_collide(linux_host_tree: Path) -> None:
    reading = collector(linux_host_tree).read()

    packages = [t for t in reading.temperatures if t.sensor == "temp1"]
    assert packages == [
        TemperatureReading(
            chip=chip,
            sensor="temp1",
            label="Physical id 0",
            temperature_celsius=55.0,
            critical_celsius=100.0,
        )
        for chip in ("platform_coretemp_0", "platform_coretemp_1")
    ]
    keys = [(t.chip, t.sensor) for t in reading.temperatures]
    assert len(keys) == len(set(keys))


def test_this_machine_is_read_plausibly() -> None:
    reading = CpuCollector(HostRoot()).read()

    assert reading.load1 is not None
    assert reading.load1 >= 0
    assert reading.mode_seconds is not None
    assert reading.cpu_mode_seconds
    total = sum(times[3] for _, times in reading.cpu_mode_seconds)
    assert reading.mode_seconds[3] == pytest.approx(total, abs=1.0)
    assert reading.boot_time_seconds is not None
    assert reading.boot_time_seconds > 1_000_000_000


@pytest.mark.parametrize(
    ("missing", "absent"),
    [
        pytest.param("proc/stat", ["stat"], id="stat"),
        pytest.param("proc/loadavg", ["loadavg"], id="loadavg"),
        pytest.param("proc/pressure/irq", ["pressure:irq"], id="one pressure file"),
    ],
)
@pytest.mark.parametrize("content", ["gone", "folder", "empty", "garbage"])
def test_one_unreadable_file_drops_only_itself(
    tmp_path: Path, missing: str, absent: list[str], content: str
) -> None:
    contents = {"folder": FOLDER, "empty": "", "garbage": "\x00\x01 lorem ipsum \n: : :\n"}
    files: dict[str, str | bytes | None] = {**PROC}
    del files[missing]
    if content != "gone":
        files[missing] = contents[content]

    reading = collector(write_tree(tmp_path, files)).read()

    assert whats(reading.absent) == [*absent, "temperatures"]
    assert all("\n" not in absence.reason for absence in reading.absent)
    assert (reading.mode_seconds is None) == (missing == "proc/stat")
    assert (reading.load1 is None) == (missing == "proc/loadavg")


def test_a_kernel_without_pressure_says_how_to_get_it(tmp_path: Path) -> None:
    files = {name: text for name, text in PROC.items() if "pressure" not in name}

    reading = collector(write_tree(tmp_path, files)).read()

    assert reading.pressure == ()
    assert reading.absent[0].what == "pressure"
    assert "psi=1" in reading.absent[0].reason


def test_nothing_at_all_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r"^.*/proc/stat does not exist$"):
        collector(tmp_path).read()


def test_a_damaged_line_of_one_cpu_drops_that_cpu_alone(tmp_path: Path) -> None:
    damaged = STAT.replace("cpu1 200 1 40", "cpu1 200 x 40").replace("ctxt 38014093", "ctxt")

    reading = collector(write_tree(tmp_path, {**PROC, "proc/stat": damaged})).read()

    assert [cpu for cpu, _ in reading.cpu_mode_seconds] == [0]
    assert reading.context_switches_total is None
    assert whats(reading.absent) == ["temperatures", "context_switches_total", "cpu1"]


@pytest.mark.parametrize("idle", ["-4000", "nan", "inf", "x", "9" * 400, ""])
def test_what_is_no_time_makes_its_line_damaged_and_not_zero(idle: str) -> None:
    stat = parse_stat(f"cpu  1 2 3 4\ncpu0 1 2 3 {idle}\n", 100)

    assert stat is not None
    assert stat.cpu_mode_seconds == ()
    assert stat.damaged_cpus == ("cpu0",)


def test_an_old_kernel_gives_fewer_modes() -> None:
    stat = parse_stat("cpu  10 20 30 40\ncpu0 10 20 30 40\n", 100)

    assert stat is not None
    assert stat.mode_seconds == (0.1, 0.2, 0.3, 0.4)


def test_modes_of_a_future_kernel_are_left_out() -> None:
    stat = parse_stat("cpu  1 2 3 4 5 6 7 8 9 10 11 12\n", 1)

    assert stat is not None
    assert stat.mode_seconds == tuple(range(1, 11))


def test_a_truncated_line_of_a_cpu_is_not_taken_for_its_times() -> None:
    stat = parse_stat("cpu0 10 20\n", 100)

    assert stat is None


def test_256_cpus_on_two_sockets_are_read_whole_and_in_order(tmp_path: Path) -> None:
    lines = [f"cpu{n} {n} 0 0 100 0 0 0 0 0 0" for n in reversed(range(256))]
    stat = "cpu  1 2 3 4 5 6 7 8 9 10\n" + "\n".join(lines) + "\nintr 5" + " 0" * 20_000 + "\n"
    tree = write_tree(tmp_path, {**PROC, "proc/stat": stat})
    for socket in (0, 1):
        attributes: dict[str, str | bytes | None] = {"name": "coretemp\n"}
        for core in range(1, 130):
            attributes[f"temp{core}_input"] = f"{40_000 + core * 100 + socket}\n"
            attributes[f"temp{core}_label"] = f"Core {core}\n"
        write_chip(tree / "sys", f"hwmon{socket}", f"platform/coretemp.{socket}", attributes)

    reading = collector(tree).read()

    assert [cpu for cpu, _ in reading.cpu_mode_seconds] == list(range(256))
    assert reading.cpu_mode_seconds[200][1][0] == 2.0
    assert len({(t.chip, t.sensor) for t in reading.temperatures}) == 258
    assert [t.sensor for t in reading.temperatures[:11]] == [f"temp{n}" for n in range(1, 12)]


@pytest.mark.parametrize(
    "driver", ["coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu0_thermal", "via_cputemp"]
)
def test_a_processor_chip_is_known_by_its_driver(tmp_path: Path, driver: str) -> None:
    tree = write_tree(tmp_path, PROC)
    write_chip(
        tree / "sys", "hwmon0", "platform/x", {"name": f"{driver}\n", "temp1_input": "41500\n"}
    )
    write_chip(tree / "sys", "hwmon1", "nvme/nvme0", {"name": "nvme\n", "temp1_input": "30000\n"})

    reading = collector(tree).read()

    assert [(t.chip, t.temperature_celsius) for t in reading.temperatures] == [("platform_x", 41.5)]


def test_thermal_zones_of_the_processor_stand_in_where_no_chip_is(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path,
        {
            **PROC,
            "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
            "sys/class/thermal/thermal_zone0/temp": "12376\n",
            "sys/class/thermal/thermal_zone1/type": "iwlwifi_1\n",
            "sys/class/thermal/thermal_zone1/temp": "50000\n",
            "sys/class/thermal/thermal_zone2/type": "x86_pkg_temp\n",
            "sys/class/thermal/thermal_zone2/temp": FOLDER,
            "sys/class/thermal/cooling_device0/type": "Processor\n",
        },
    )

    reading = collector(tree).read()

    assert reading.temperatures == (
        TemperatureReading(
            chip="thermal_zone0", sensor="temp", label="cpu-thermal", temperature_celsius=12.376
        ),
    )
    assert whats(reading.absent) == ["thermal:thermal_zone2"]


@pytest.mark.parametrize("text", ["", "1 2", "a b c", "nan 0 0", "1e400 0 0", "-1 0 0"])
def test_a_load_average_that_is_none_is_absent(text: str) -> None:
    assert parse_loadavg(text) is None


def test_pressure_without_a_total_is_absent() -> None:
    assert parse_pressure("some avg10=0.00 total=\nfull\n", "io") is None
    assert parse_pressure("\n\nsome total=1000000", "io") == (
        PressureReading(resource="io", kind="some", stalled_seconds_total=1.0),
    )
