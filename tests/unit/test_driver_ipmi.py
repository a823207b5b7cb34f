import os
import signal
import threading
import time
from pathlib import Path

import pytest

from esnode.drivers.ipmi import (
    ProcessOutcome,
    ProcessRunner,
    ProcessUnavailable,
    explain_exit,
    parse_dcmi,
    parse_sensors,
)
from esnode.readings.host import Absence
from esnode.readings.power import BmcSensorReading, DcmiPowerReading, PowerSensorReading
from tests.programs import dies, write_program


def dcmi_text(now: str = "215 Watts", state: str = "activated", minimum: str = "162 Watts") -> str:
    return f"""
    Instantaneous power reading:                   {now}
    Minimum during sampling period:                {minimum}
    Maximum during sampling period:                276 Watts
    Average power reading over sample period:      176 Watts
    IPMI timestamp:                           Thu Feb 15 08:36:01 2024
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   {state}

"""


def test_an_active_controller_gives_its_draw() -> None:
    assert parse_dcmi(dcmi_text()) == DcmiPowerReading(
        power_watts=215.0,
        minimum_watts=162.0,
        maximum_watts=276.0,
        average_watts=176.0,
        is_active=True,
    )


def test_a_minimum_of_zero_is_unknown() -> None:
    reading = parse_dcmi(dcmi_text(minimum="0 Watts"))

    assert isinstance(reading, DcmiPowerReading)
    assert (reading.minimum_watts, reading.power_watts) == (None, 215.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            dcmi_text(now="319 Watts", state="deactivated"),
            "power measurement is deactivated: 319 W not used",
            id="deactivated",
        ),
        pytest.param(
            dcmi_text(now="0 Watts"), "the controller says 0 W: it is not measuring", id="zero"
        ),
        pytest.param(
            dcmi_text(now="250000 Watts"),
            "the controller says 250000 W: more than any machine draws",
            id="absurd",
        ),
        pytest.param(
            dcmi_text(now="215 Amps"),
            "the answer has no line with the present draw",
            id="another unit",
        ),
        pytest.param("", "the answer has no line with the present draw", id="empty"),
        pytest.param(
            dcmi_text()[:120], "power measurement is not given: 215 W not used", id="truncated"
        ),
        pytest.param("nan: inf\n|||\x00", "the answer has no line with the present draw", id="bad"),
    ],
)
def test_what_is_no_reading_says_why(text: str, reason: str) -> None:
    assert parse_dcmi(text) == Absence(what="dcmi", reason=reason)


ELIST = """\
Inlet Temp       | 04h | ok  |  7.1 | 23 degrees C
Temp             | 01h | ok  |  3.1 | 45 degrees C
Temp             | 02h | cr  |  3.2 | 97 degrees C
Fan1A            | 30h | ok  |  7.1 | 6120 RPM
Fan2A            | 31h | ns  |  7.1 | No Reading
PS1 Input Power  | 3Bh | ok  | 10.1 | 230 Watts
PS2 Input Power  | 3Ch | ok  | 10.2 | 0 Watts
PS1 Voltage 1    | 6Ch | ok  | 10.1 | 230 Volts
PS1 Status       | 85h | ok  | 10.1 | Presence detected
GPU1 Temp        | 86h | ns  |  3.3 | Disabled
"""


def test_an_elist_gives_draws_temperatures_and_fans() -> None:
    table = parse_sensors(ELIST)

    assert table is not None
    assert table.power_sensors == (
        PowerSensorReading(
            chip="bmc", sensor="PS1 Input Power", label="PS1 Input Power", power_watts=230.0
        ),
    )
    assert table.sensors == (
        BmcSensorReading(sensor="Inlet Temp", kind="temperature", temperature_celsius=23.0),
        BmcSensorReading(sensor="Temp 3.1", kind="temperature", temperature_celsius=45.0),
        BmcSensorReading(sensor="Temp 3.2", kind="temperature", temperature_celsius=97.0),
        BmcSensorReading(sensor="Fan1A", kind="fan", fan_speed_rpm=6120.0),
    )
    assert table.absent == (
        Absence(what="ipmi:Fan2A", reason="the controller has no reading of it (ns)"),
        Absence(what="ipmi:PS2 Input Power", reason="the controller says 0 W: it is not measuring"),
        Absence(what="ipmi:GPU1 Temp", reason="the controller has no reading of it (ns)"),
    )


def test_numbers_that_no_machine_has_are_no_readings() -> None:
    table = parse_sensors(
        "Hot  | 04h | ok  |  7.1 | 1e300 degrees C\n"
        "Cold | 05h | ok  |  7.1 | -4000 degrees F\n"
        "Fan1 | 30h | ok  |  7.1 | 1e9 RPM\n"
        "Fan2 | 31h | ok  |  7.1 | -1 RPM\n"
    )

    assert table is not None
    assert table.sensors == ()
    assert [absence.what for absence in table.absent] == [
        "ipmi:Hot",
        "ipmi:Cold",
        "ipmi:Fan1",
        "ipmi:Fan2",
    ]


def test_the_sensor_table_has_unit_and_thresholds_of_its_own() -> None:
    table = parse_sensors(
        "PSU1 Power In    | 480.000    | Watts      | ok    | na  | na | na | na | 1000.0 | na \n"
        "PSU2 Power In    | na         | Watts      | na    | na  | na | na | na | 1000.0 | na \n"
        "CPU0 Temp        | 41.000     | degrees C  | ok    | 0.0 | na | na | na | 95.0   | na \n"
        "FAN1             | 0.000      | RPM        | nr    | na  | na | na | na | na     | na \n"
        "12V              | 12.096     | Volts      | ok    | na  | na | na | na | na     | na \n"
        "PSU1 Status      | 0x1        | discrete   | 0x0180| na  | na | na | na | na     | na \n"
    )

    assert table is not None
    assert [(s.sensor, s.power_watts) for s in table.power_sensors] == [("PSU1 Power In", 480.0)]
    assert [(s.sensor, s.temperature_celsius, s.fan_speed_rpm) for s in table.sensors] == [
        ("CPU0 Temp", 41.0, None),
        # A fan that stands still is a reading: it is what an operator must see.
        ("FAN1", None, 0.0),
    ]
    assert [absence.what for absence in table.absent] == ["ipmi:PSU2 Power In"]


def test_the_short_list_is_understood_too() -> None:
    table = parse_sensors(
        "Ambient Temp     | 77 degrees F      | ok\n"
        "System Level     | 332 Watts         | ok\n"
        "Status           | 0x00              | ok\n"
        "Exhaust Temp     | disabled          | ns\n"
    )

    assert table is not None
    assert [(s.sensor, s.power_watts) for s in table.power_sensors] == [("System Level", 332.0)]
    assert [s.temperature_celsius for s in table.sensors] == [25.0]
    assert [absence.what for absence in table.absent] == ["ipmi:Exhaust Temp"]


def test_sensors_that_share_name_and_place_are_numbered() -> None:
    table = parse_sensors("Temp | 30 degrees C | ok\nTemp | 31 degrees C | ok\n")

    assert table is not None
    assert [(s.sensor, s.temperature_celsius) for s in table.sensors] == [
        ("Temp", 30.0),
        ("Temp #2", 31.0),
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "Invalid command\n", "| |\n", "\x00\xff"])
def test_text_that_is_no_table_gives_none(text: str) -> None:
    assert parse_sensors(text) is None


@pytest.mark.parametrize(
    "line",
    [
        "PS1 Input Power | 3Bh | ok | 10.1 | 23",
        "PS1 Input Power | 3Bh | ok | 10.1 | 230 Wat",
        "PS1 Input Power | 3Bh | ok | 10.1",
        "PS1 Input Power | 3Bh | ok",
        "PS1 Input Power | nan | Watts | ok",
        "PS1 Input Power | 1e999 | Watts | ok",
    ],
)
def test_a_line_cut_short_gives_no_number(line: str) -> None:
    table = parse_sensors(line)

    assert table is not None
    assert (table.power_sensors, table.sensors) == ((), ())


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        pytest.param(
            "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: "
            "No such file or directory\n",
            "no /dev/ipmi0: load ipmi_si and ipmi_devintf, unless the host has no controller",
            id="no device",
        ),
        pytest.param(
            "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: "
            "Permission denied\n",
            "permission denied for /dev/ipmi0: run as root or give this user access to it",
            id="no permission",
        ),
        pytest.param(
            "\nDCMI request failed because: Invalid command (c1)\nmore\n",
            "ipmitool ended with status 1: DCMI request failed because: Invalid command (c1)",
            id="its first line",
        ),
        pytest.param("", "ipmitool ended with status 1: it says nothing", id="silence"),
    ],
)
def test_a_failed_run_is_explained_in_one_line(errors: str, reason: str) -> None:
    assert explain_exit(ProcessOutcome(exit_status=1, output="", errors=errors)) == reason


def test_a_program_runs_to_its_end_in_plain_english(tmp_path: Path) -> None:
    program = write_program(tmp_path, 'echo "$LC_ALL $*"; echo oops >&2; exit 3')

    outcome = ProcessRunner()((program, "sdr", "list"), 10.0)

    assert outcome == ProcessOutcome(exit_status=3, output="C sdr list\n", errors="oops\n")


def test_a_program_that_hangs_dies_at_its_deadline_with_its_child(tmp_path: Path) -> None:
    program = write_program(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; echo so far; wait")

    outcome = ProcessRunner()((program,), 1.0)

    assert outcome.is_overdue
    assert outcome.output == "so far\n"
    assert dies(int((tmp_path / "child").read_text()))


def test_a_child_that_leaves_the_group_does_not_hold_the_runner(tmp_path: Path) -> None:
    program = write_program(
        tmp_path, f"setsid sleep 600 & echo $! > {tmp_path}/child; echo done; exit 0"
    )

    outcome = ProcessRunner()((program,), 10.0)

    assert (outcome.exit_status, outcome.output, outcome.is_overdue) == (0, "done\n", False)
    os.kill(int((tmp_path / "child").read_text()), 9)


def test_beside_a_program_that_cannot_be_killed_no_second_is_started(tmp_path: Path) -> None:
    hanging = write_program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    quick = write_program(tmp_path, "echo hello", "quick")
    run = ProcessRunner(grace_seconds=0.01, kill_group=lambda group, number: None)

    outcome = run((hanging,), 1.0)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessUnavailable, match=rf"\(pid {pid}\) hangs and cannot be killed$"):
        run((quick,), 10.0)
    os.kill(pid, signal.SIGKILL)

    assert dies(pid)
    assert outcome.is_overdue
    assert run((quick,), 10.0).output == "hello\n"


def test_a_closed_runner_kills_what_runs_and_starts_nothing(tmp_path: Path) -> None:
    pid, new = tmp_path / "pid", tmp_path / "new"
    hanging = write_program(tmp_path, f"echo $$ > {new}; mv {new} {pid}; exec sleep 60")
    run = ProcessRunner()
    outcomes: list[ProcessOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(run((hanging,), 50.0)))
    thread.start()
    while not pid.exists():
        time.sleep(0.01)

    run.close()
    thread.join(10.0)

    assert dies(int(pid.read_text()))
    assert [outcome.exit_status for outcome in outcomes] == [-signal.SIGKILL]
    with pytest.raises(ProcessUnavailable, match="is not started: esnode is ending"):
        run((hanging,), 1.0)


def test_a_program_that_floods_is_cut_at_the_bound(tmp_path: Path) -> None:
    program = write_program(tmp_path, "exec yes")

    outcome = ProcessRunner(max_output_bytes=256 << 10)((program,), 10.0)

    assert outcome.is_cut
    assert not outcome.is_overdue
    assert len(outcome.output) <= 256 << 10


def test_a_program_that_is_missing_names_its_package(tmp_path: Path) -> None:
    with pytest.raises(ProcessUnavailable, match="install the package ipmitool"):
        ProcessRunner()((f"{tmp_path}/ipmitool",), 1.0)


def test_a_program_without_the_right_to_run_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ipmitool"
    path.write_text("#!/bin/sh\n")

    with pytest.raises(ProcessUnavailable, match="may not be run by this user"):
        ProcessRunner()((str(path),), 1.0)


def test_a_file_that_is_no_program_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ipmitool"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)

    with pytest.raises(ProcessUnavailable, match="cannot be run: Exec format error"):
        ProcessRunner()((str(path),), 1.0)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    program = write_program(tmp_path, "echo hello")
    run = ProcessRunner()
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(5):
        run((program,), 10.0)

    assert len(os.listdir("/proc/self/fd")) == before
