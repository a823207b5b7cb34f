"""The baseboard controller: the draw of the chassis, its power supplies, temperatures and fans.

It is its own file as one subject with one worker, and a slow one. It must not know the formats
of `ipmitool`, nor which of the draws is the node's.
"""

from collections.abc import Sequence

from esnode.collectors.base import CollectFailed, CollectUnavailable
from esnode.drivers.ipmi import (
    DCMI_COMMAND,
    SENSORS_COMMAND,
    ProcessOutcome,
    ProcessRunner,
    ProcessUnavailable,
    RunProcess,
    explain_exit,
    has_no_device,
    parse_dcmi,
    parse_sensors,
)
from esnode.readings.host import Absence
from esnode.readings.power import DcmiPowerReading, IpmiReading

DEADLINE_SECONDS = 15.0
"""Of each command: a healthy controller lists its sensors in 1 to 8 s over the local interface."""


class IpmiCollector:
    """Asks the host's own controller, one process at a time."""

    name = "ipmi"

    def __init__(
        self,
        *,
        binary: str = "ipmitool",
        deadline_seconds: float = DEADLINE_SECONDS,
        run: RunProcess | None = None,
    ) -> None:
        self._binary = binary
        self._deadline_seconds = deadline_seconds
        self._run = run or ProcessRunner()

    def read(self) -> IpmiReading:
        """Ask for the draw, then for the sensors.

        Raises:
            CollectFailed: the program or the device is missing, the controller hangs, or it
                answers neither question.
        """
        absent: list[Absence] = []
        draw, draw_failed = self._ask(DCMI_COMMAND)
        dcmi: DcmiPowerReading | None = None
        if draw_failed:
            absent.append(Absence(what="dcmi", reason=draw_failed))
        else:
            answer = parse_dcmi(draw.output)
            if isinstance(answer, Absence):
                absent.append(answer)
            else:
                dcmi = answer
        if draw.is_overdue:
            # The list of sensors takes far longer than this one question: do not try it.
            raise CollectFailed(draw_failed)
        listed, list_failed = self._ask(SENSORS_COMMAND)
        # A list that was cut short, by an error or the deadline, is still good up to there.
        table = parse_sensors(listed.output)
        if list_failed or table is None:
            reason = list_failed or "the answer has no line of a sensor"
            absent.append(Absence(what="sensors", reason=reason))
        if dcmi is None and table is None:
            raise CollectFailed("; ".join(dict.fromkeys(absence.reason for absence in absent)))
        return IpmiReading(
            dcmi=dcmi,
            power_sensors=table.power_sensors if table else (),
            sensors=table.sensors if table else (),
            absent=tuple(absent) + (table.absent if table else ()),
        )

    def _ask(self, question: Sequence[str]) -> tuple[ProcessOutcome, str]:
        """The outcome, and one line on what went wrong; an empty one when nothing did."""
        asked = f"{self._binary} {' '.join(question)}"
        try:
            outcome = self._run((self._binary, *question), self._deadline_seconds)
        except ProcessUnavailable as unavailable:
            if unavailable.is_absent:
                raise CollectUnavailable(str(unavailable)) from None
            return ProcessOutcome(exit_status=-1, output="", errors=""), str(unavailable)
        if outcome.is_overdue:
            seconds = f"{self._deadline_seconds:g} s"
            return outcome, f"{asked} had no answer after {seconds} and was killed"
        if outcome.is_cut:
            return outcome, f"{asked} printed more than fits"
        if has_no_device(outcome):
            raise CollectUnavailable(explain_exit(outcome))
        if outcome.exit_status != 0:
            return outcome, explain_exit(outcome)
        return outcome, ""
