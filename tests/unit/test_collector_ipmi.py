from collections.abc import Sequence
from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.ipmi import IpmiCollector
from esnode.drivers.ipmi import ProcessOutcome
from esnode.readings.power import DcmiPowerReading
from tests.programs import dies, write_program

DCMI = """cat <<'END'
    Instantaneous power reading:                   215 Watts
    Minimum during sampling period:                162 Watts
    Maximum during sampling period:                276 Watts
    Average power reading over sample period:      176 Watts
    Power reading state is:                   activated
END
"""
SENSORS = """cat <<'END'
Inlet Temp       | 04h | ok  |  7.1 | 23 degrees C
PS1 Input Power  | 3Bh | ok  | 10.1 | 230 Watts
PS2 Input Power  | 3Ch | ns  | 10.2 | No Reading
END
"""


def program(folder: Path, dcmi: str, sensors: str) -> str:
    """An ipmitool that answers our two questions and refuses any other."""
    return write_program(
        folder,
        f"""echo "$*" >> {folder}/asked
case "$*" in
"dcmi power reading")
{dcmi}
;;
"sdr elist full")
{sensors}
;;
*) exit 9 ;;
esac""",
    )


def collector(binary: str, deadline_seconds: float = 10.0) -> IpmiCollector:
    return IpmiCollector(binary=binary, deadline_seconds=deadline_seconds)


def test_draw_and_sensors_are_read_by_one_process_each(tmp_path: Path) -> None:
    reading = collector(program(tmp_path, DCMI, SENSORS)).read()

    assert reading.dcmi == DcmiPowerReading(
        power_watts=215.0,
        minimum_watts=162.0,
        maximum_watts=276.0,
        average_watts=176.0,
        is_active=True,
    )
    assert [(s.sensor, s.power_watts) for s in reading.power_sensors] == [
        ("PS1 Input Power", 230.0)
    ]
    assert [(s.sensor, s.temperature_celsius) for s in reading.sensors] == [("Inlet Temp", 23.0)]
    assert [absence.what for absence in reading.absent] == ["ipmi:PS2 Input Power"]
    assert (tmp_path / "asked").read_text() == "dcmi power reading\nsdr elist full\n"


def test_a_controller_without_dcmi_still_gives_sensors(tmp_path: Path) -> None:
    refusal = "echo 'DCMI request failed because: Invalid command (c1)' >&2; exit 1"

    reading = collector(program(tmp_path, refusal, SENSORS)).read()

    assert reading.dcmi is None
    assert len(reading.power_sensors) == 1
    assert reading.absent[0].what == "dcmi"
    assert reading.absent[0].reason == (
        "ipmitool ended with status 1: DCMI request failed because: Invalid command (c1)"
    )


def test_a_deactivated_meter_is_absent_and_not_a_draw(tmp_path: Path) -> None:
    reading = collector(program(tmp_path, DCMI.replace("activated", "deactivated"), SENSORS)).read()

    assert reading.dcmi is None
    assert reading.absent[0].reason == "power measurement is deactivated: 215 W not used"


def test_sensors_that_fail_leave_the_draw(tmp_path: Path) -> None:
    reading = collector(program(tmp_path, DCMI, "exit 1")).read()

    assert reading.dcmi is not None
    assert [absence.what for absence in reading.absent] == ["sensors"]


def test_a_list_that_breaks_off_is_used_up_to_there(tmp_path: Path) -> None:
    reading = collector(program(tmp_path, DCMI, f"{SENSORS}exit 1")).read()

    assert len(reading.power_sensors) == 1
    assert [absence.what for absence in reading.absent] == ["sensors", "ipmi:PS2 Input Power"]


def test_sensors_that_hang_leave_the_draw(tmp_path: Path) -> None:
    reading = collector(program(tmp_path, DCMI, "sleep 600"), 1.0).read()

    assert reading.dcmi is not None
    assert reading.absent[0].reason.endswith(
        "ipmitool sdr elist full had no answer after 1 s and was killed"
    )


def test_a_controller_that_hangs_fails_at_the_deadline_and_is_asked_no_more(
    tmp_path: Path,
) -> None:
    hanging = f"sleep 600 & echo $! > {tmp_path}/child; wait"

    with pytest.raises(CollectFailed, match=r"dcmi power reading had no answer after 1 s"):
        collector(program(tmp_path, hanging, SENSORS), 1.0).read()

    assert dies(int((tmp_path / "child").read_text()))
    assert (tmp_path / "asked").read_text() == "dcmi power reading\n"


def test_a_program_that_floods_is_an_absence(tmp_path: Path) -> None:
    reading = collector(program(tmp_path, DCMI, "exec yes")).read()

    assert reading.dcmi is not None
    assert reading.absent[0].reason.endswith("sdr elist full printed more than fits")


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        pytest.param(
            "Could not open device at /dev/ipmi0 or /dev/ipmi/0: No such file or directory",
            "^no /dev/ipmi0: load ipmi_si and ipmi_devintf, unless the host has no controller$",
            id="no device",
        ),
        pytest.param(
            "Could not open device at /dev/ipmi0 or /dev/ipmi/0: Permission denied",
            "^permission denied for /dev/ipmi0: run as root or give this user access to it$",
            id="no permission",
        ),
        pytest.param("bad\nworse", "^ipmitool ended with status 1: bad$", id="anything else"),
    ],
)
def test_a_host_without_a_usable_controller_fails_in_one_line(
    tmp_path: Path, errors: str, reason: str
) -> None:
    failing = f"echo '{errors}' >&2; exit 1"

    with pytest.raises(CollectFailed, match=reason):
        collector(program(tmp_path, failing, failing)).read()


def test_a_missing_program_fails_with_the_package_to_install(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r": install the package ipmitool, or turn ipmi off$"):
        collector(f"{tmp_path}/ipmitool").read()


def test_the_runner_gets_the_question_and_the_deadline() -> None:
    asked: list[tuple[tuple[str, ...], float]] = []

    def run(command: Sequence[str], deadline_seconds: float) -> ProcessOutcome:
        asked.append((tuple(command), deadline_seconds))
        return ProcessOutcome(exit_status=0, output="Temp | 30 degrees C | ok\n", errors="")

    reading = IpmiCollector(binary="/opt/ipmitool", deadline_seconds=7.0, run=run).read()

    assert asked == [
        (("/opt/ipmitool", "dcmi", "power", "reading"), 7.0),
        (("/opt/ipmitool", "sdr", "elist", "full"), 7.0),
    ]
    assert [s.temperature_celsius for s in reading.sensors] == [30.0]
    assert [absence.what for absence in reading.absent] == ["dcmi"]
