"""What the baseboard controller says, through the program `ipmitool`.

It is its own file because two different outputs of one program are parsed here, purely, and the
program is run here, with a bound on time and on size: a slow controller can hold it for ever.
It must not know how often it is asked. Source for the formats: ipmitool, lib/ipmi_dcmi.c and
lib/ipmi_sdr.c.
"""

import fcntl
import math
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from esnode.drivers.hwmon import MAX_POWER_WATTS
from esnode.readings.host import Absence
from esnode.readings.power import BmcSensorReading, DcmiPowerReading, PowerSensorReading

DCMI_COMMAND = ("dcmi", "power", "reading")
SENSORS_COMMAND = ("sdr", "elist", "full")

MAX_TEMPERATURE_CELSIUS = 1000.0
MAX_FAN_SPEED_RPM = 1e6
"""No sensor of a machine comes near these: beyond them a controller makes numbers up."""

MAX_OUTPUT_BYTES = 1 << 20
"""A controller with 500 sensors prints about 40 kB."""

_SLACK_BYTES = 64 << 10
"""The kernel may refuse a write that would cross the end as a whole, and programs write in
blocks of up to this size: fuller than the end less one block counts as full."""

_GRACE_SECONDS = 2.0
"""How long a killed process may take to die. One that takes longer is stuck in the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOutcome:
    """How one run of a program ended."""

    exit_status: int
    output: str
    errors: str
    is_overdue: bool = False
    """It was killed at its deadline."""
    is_cut: bool = False
    """It filled the space for its output."""


class ProcessUnavailable(Exception):
    """The program could not be started. The text is one line for the operator."""

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        self.is_absent = is_absent
        """It is not installed."""


RunProcess = Callable[[Sequence[str], float], ProcessOutcome]
"""(command, deadline in seconds) to outcome. Raises `ProcessUnavailable`."""


class _BoundedOutput:
    """Memory that a process writes to as a file, and that the kernel keeps from growing."""

    def __init__(self, limit_bytes: int) -> None:
        self.descriptor = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._limit_bytes = limit_bytes
        os.ftruncate(self.descriptor, limit_bytes)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)

    def text(self) -> str:
        """What was written: the process shares our file position, which is where it stopped."""
        length = os.lseek(self.descriptor, 0, os.SEEK_CUR)
        written = os.pread(self.descriptor, min(length, self._limit_bytes), 0)
        return written.decode("utf-8", "backslashreplace")

    def is_full(self) -> bool:
        """Whether a write must have been refused, or soon would be."""
        return os.lseek(self.descriptor, 0, os.SEEK_CUR) > self._limit_bytes - _SLACK_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class ProcessRunner:
    """Runs one program at a time, each in a process group of its own that ends at its deadline."""

    def __init__(
        self,
        *,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        grace_seconds: float = _GRACE_SECONDS,
        kill_group: Callable[[int, int], None] = os.killpg,
    ) -> None:
        self._max_output_bytes = max_output_bytes
        self._grace_seconds = grace_seconds
        self._kill_group = kill_group
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._stuck: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def __call__(self, command: Sequence[str], deadline_seconds: float) -> ProcessOutcome:
        """Run a command to its end or its deadline.

        Raises:
            ProcessUnavailable: it could not be started, an earlier one cannot be killed, or the
                runner is closed.
        """
        with self._lock:
            # A process stuck in the kernel outlives SIGKILL: never start a second beside it.
            if self._stuck is not None and self._stuck.poll() is None:
                pid = self._stuck.pid
                raise ProcessUnavailable(f"{command[0]} (pid {pid}) hangs and cannot be killed")
            self._stuck = None
            if self._is_closed:
                raise ProcessUnavailable(f"{command[0]} is not started: esnode is ending")
            try:
                with (
                    _BoundedOutput(self._max_output_bytes) as output,
                    _BoundedOutput(self._max_output_bytes) as errors,
                ):
                    return self._run(command, deadline_seconds, output, errors)
            except OSError as error:
                raise ProcessUnavailable(
                    explain_start(command[0], error),
                    is_absent=isinstance(error, FileNotFoundError),
                ) from None

    def close(self) -> None:
        """Kill the program under way, and start no other: it would outlive this process."""
        self._is_closed = True
        self._kill_running()

    def _kill_running(self) -> None:
        process = self._running
        # Asked for just before, so the number is still its own.
        if process is not None and process.poll() is None:
            self._kill_group(process.pid, signal.SIGKILL)

    def _run(
        self,
        command: Sequence[str],
        deadline_seconds: float,
        output: _BoundedOutput,
        errors: _BoundedOutput,
    ) -> ProcessOutcome:
        path = os.environ.get("PATH", os.defpath)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output.descriptor,
            stderr=errors.descriptor,
            env={"LC_ALL": "C", "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin"},
            start_new_session=True,
        )
        self._running = process
        if self._is_closed:  # between the look at it and the start
            self._kill_running()
        is_overdue = False
        try:
            process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            is_overdue = True
            # Not yet waited for, so its number, which is its group's too, is still its own.
            self._kill_group(process.pid, signal.SIGKILL)
            try:
                process.wait(self._grace_seconds)
            except subprocess.TimeoutExpired:
                self._stuck = process
        return ProcessOutcome(
            exit_status=-signal.SIGKILL if process.returncode is None else process.returncode,
            output=output.text(),
            errors=errors.text(),
            is_overdue=is_overdue,
            is_cut=output.is_full() or errors.is_full(),
        )


def explain_start(program: str, error: OSError) -> str:
    """Say in one line why a program could not be started."""
    if isinstance(error, FileNotFoundError):
        return f"{program} is not installed: install the package ipmitool, or turn ipmi off"
    if isinstance(error, PermissionError):
        return f"{program} may not be run by this user: check its mode and the agent's confinement"
    return f"{program} cannot be run: {error.strerror or type(error).__name__}"


def has_no_device(outcome: ProcessOutcome) -> bool:
    """Whether the program found no way to a controller: the host has none, or no driver for it."""
    told = outcome.errors.lower()
    return "could not open device" in told and "permission denied" not in told


def explain_exit(outcome: ProcessOutcome) -> str:
    """Say in one line why a run gave nothing, with what would help."""
    said = [line.strip() for line in outcome.errors.splitlines() if line.strip()]
    first = ascii(said[0][:160])[1:-1] if said else "it says nothing"
    told = outcome.errors.lower()
    if "could not open device" in told and "permission denied" in told:
        return "permission denied for /dev/ipmi0: run as root or give this user access to it"
    if has_no_device(outcome):
        return "no /dev/ipmi0: load ipmi_si and ipmi_devintf, unless the host has no controller"
    return f"ipmitool ended with status {outcome.exit_status}: {first}"


def parse_value(text: str) -> float | None:
    """Read a number as ipmitool prints it: finite, else nothing."""
    try:
        value = float(text.replace("_", "x"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def find_power_fault(watts: float) -> str | None:
    """Why a draw cannot be a reading; nothing when it can."""
    if watts <= 0:
        return f"the controller says {watts:g} W: it is not measuring"
    if watts > MAX_POWER_WATTS:
        return f"the controller says {watts:g} W: more than any machine draws"
    return None


_DCMI_LINE = re.compile(r"^\s*([A-Za-z ]+?)\s*:\s*(.*?)\s*$", re.MULTILINE)
_DCMI_LABELS = {
    "now": "instantaneous power reading",
    "minimum": "minimum during sampling period",
    "maximum": "maximum during sampling period",
    "average": "average power reading over sample period",
}


def parse_dcmi(text: str) -> DcmiPowerReading | Absence:
    """Read the answer to `dcmi power reading`.

    A draw of 0 W, or one given while measurement is switched off, is no reading: controllers
    print either for "unknown".
    """
    lines = {match[1].lower(): match[2] for match in _DCMI_LINE.finditer(text)}
    values: dict[str, float | None] = {}
    for key, label in _DCMI_LABELS.items():
        number, _, unit = lines.get(label, "").partition(" ")
        values[key] = parse_value(number) if unit.strip() == "Watts" else None
    watts, state = values["now"], lines.get("power reading state is")
    if watts is None:
        return Absence(what="dcmi", reason="the answer has no line with the present draw")
    if state != "activated":
        shown = ascii((state or "not given")[:40])[1:-1]
        return Absence(what="dcmi", reason=f"power measurement is {shown}: {watts:g} W not used")
    fault = find_power_fault(watts)
    if fault is not None:
        return Absence(what="dcmi", reason=fault)
    return DcmiPowerReading(
        power_watts=watts,
        minimum_watts=_keep_draw(values["minimum"]),
        maximum_watts=_keep_draw(values["maximum"]),
        average_watts=_keep_draw(values["average"]),
        is_active=True,
    )


def _keep_draw(watts: float | None) -> float | None:
    return watts if watts is not None and find_power_fault(watts) is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorTable:
    """What a table of sensors holds of draws, temperatures and fans."""

    power_sensors: tuple[PowerSensorReading, ...]
    sensors: tuple[BmcSensorReading, ...]
    absent: tuple[Absence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    name: str
    place: str
    """Entity, e.g. ``10.1``; empty where the table has none."""
    value: str
    unit: str
    status: str


_SENSOR_NUMBER = re.compile(r"[0-9A-Fa-f]{2}h")
_SILENT_VALUES = frozenset({"na", "no reading", "disabled", "not readable", "unknown"})
_SILENT_STATES = frozenset({"ns", "na"})


def _split_row(line: str) -> _Row | None:
    """One line of `sdr elist`, `sdr list` or `sensor`, which differ in their columns."""
    cells = [" ".join(cell.split()) for cell in line.split("|")]
    if len(cells) < 3 or not cells[0]:
        return None
    if len(cells) == 5 and _SENSOR_NUMBER.fullmatch(cells[1]):
        value, _, unit = cells[4].partition(" ")
        row = (cells[0], cells[3], value, unit, cells[2], cells[4])
    elif len(cells) == 3:
        value, _, unit = cells[1].partition(" ")
        row = (cells[0], "", value, unit, cells[2], cells[1])
    else:
        row = (cells[0], "", cells[1], cells[2], cells[3], cells[1])
    name, place, value, unit, status, whole = row
    if whole.lower() in _SILENT_VALUES or status.lower() in _SILENT_STATES:
        value = ""
    return _Row(name=name, place=place, value=value, unit=unit, status=status)


def parse_sensors(text: str) -> SensorTable | None:
    """Read a sensor table; sensors of other kinds (volts, switches) are left out.

    Names are made unique by entity, because some controllers call every sensor ``Temp``.
    ``None`` when nothing in the text has the form of a sensor.
    """
    rows = [row for line in text.splitlines() if (row := _split_row(line)) is not None]
    if not rows:
        return None
    power: list[PowerSensorReading] = []
    others: list[BmcSensorReading] = []
    absent: list[Absence] = []
    for name, row in zip(_unique_names(rows), rows, strict=True):
        found = _read_row(name, row)
        if isinstance(found, PowerSensorReading):
            power.append(found)
        elif isinstance(found, BmcSensorReading):
            others.append(found)
        elif found is not None:
            absent.append(found)
    return SensorTable(power_sensors=tuple(power), sensors=tuple(others), absent=tuple(absent))


def _unique_names(rows: list[_Row]) -> list[str]:
    taken = Counter(row.name for row in rows)
    names = [f"{row.name} {row.place}".strip() if taken[row.name] > 1 else row.name for row in rows]
    seen: Counter[str] = Counter()
    unique: list[str] = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return unique


def _read_row(name: str, row: _Row) -> PowerSensorReading | BmcSensorReading | Absence | None:
    what = f"ipmi:{name}"
    if not row.value:
        return Absence(what=what, reason=f"the controller has no reading of it ({row.status})")
    value = parse_value(row.value)
    if value is None:
        return None
    if row.unit == "Watts":
        fault = find_power_fault(value)
        if fault is not None:
            return Absence(what=what, reason=fault)
        return PowerSensorReading(chip="bmc", sensor=name, label=row.name, power_watts=value)
    if row.unit in ("degrees C", "degrees F"):
        celsius = value if row.unit == "degrees C" else (value - 32) / 1.8
        if abs(celsius) > MAX_TEMPERATURE_CELSIUS:
            return Absence(what=what, reason=f"the controller says {celsius:g} degrees C")
        return BmcSensorReading(sensor=name, kind="temperature", temperature_celsius=celsius)
    if row.unit == "RPM":
        if not 0 <= value <= MAX_FAN_SPEED_RPM:
            return Absence(what=what, reason=f"the controller says {value:g} revolutions a minute")
        return BmcSensorReading(sensor=name, kind="fan", fan_speed_rpm=value)
    return None
