"""How a simulated machine and its history read on a screen and in a JSON document.

Pure, apart from the commands so that it can be tested by its lines. It takes truths, never files.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from esnode.drivers.simulated.changes import boot_id
from esnode.drivers.simulated.codec import HistoryLine, describe_event
from esnode.drivers.simulated.machine import EVENT_NAMES, Machine
from esnode.drivers.simulated.truth import GpuTruth, truth_at

SHOW_SCHEMA = "esnode.simulated.show/1"
HISTORY_SCHEMA = "esnode.simulated.history/1"

SHOW_COLUMNS = (
    "GPU",
    "NAME",
    "LOAD",
    "DEMAND",
    "DRAW",
    "CAP",
    "REQUESTED",
    "PENDING",
    "TEMP",
    "THROTTLE",
    "FAULTS",
)
LEFT_COLUMNS = {"NAME", "THROTTLE", "FAULTS", "TIME (UTC)", "CAUSE", "CHANGE"}


def align(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: numbers to the right, words to the left, two spaces between."""
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    lines = []
    for row in (columns, *rows):
        cells = [
            cell.ljust(width) if column in LEFT_COLUMNS else cell.rjust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def show_rows(machine: Machine) -> list[str]:
    """The machine at its own instant, one line for each GPU."""
    truth = truth_at(machine, machine.at_seconds)
    head = (
        f"simulated {machine.spec}: boot {machine.boot_number}, up"
        f" {truth.at_seconds - machine.boot_seconds:.0f} s, inlet {machine.inlet_celsius:g} C,"
        f" chassis {truth.chassis_power_watts:.0f} W"
    )
    rows = [_show_row(gpu, truth.at_seconds) for gpu in truth.gpus]
    return [head, *align(SHOW_COLUMNS, rows)]


def _show_row(gpu: GpuTruth, now_seconds: float) -> tuple[str, ...]:
    pending = ", ".join(
        f"{cap.watts} W in {max(0.0, cap.takes_effect_seconds - now_seconds):.1f} s"
        for cap in gpu.caps_pending
    )
    faults = (*gpu.faults, *(("shut-down",) if gpu.is_lost and not gpu.faults else ()))
    return (
        str(gpu.index),
        gpu.name,
        f"{gpu.load.ratio:.2f} {gpu.load.kind}",
        f"{gpu.demanded_watts:.0f} W",
        f"{gpu.draw_watts:.0f} W",
        f"{gpu.cap_in_force_watts} W",
        f"{gpu.cap_requested_watts} W",
        pending or "-",
        f"{gpu.temperature_celsius:.0f} C",
        ",".join(gpu.throttle_reasons) or "-",
        ",".join(faults) or "-",
    )


def show_document(machine: Machine, path: Path) -> dict[str, object]:
    """The same as one JSON document."""
    truth = truth_at(machine, machine.at_seconds)
    return {
        "schema": SHOW_SCHEMA,
        "path": str(path),
        "spec": machine.spec,
        "boot_id": boot_id(machine),
        "boot_seconds": machine.boot_seconds,
        "keeps_limits": machine.keeps_limits,
        **asdict(truth),
    }


def history_rows(lines: Sequence[HistoryLine], machine: Machine) -> list[str]:
    """One line for each change."""
    index_of = {gpu.uuid: str(gpu.index) for gpu in machine.gpus}
    names = {kind: name for name, kind in EVENT_NAMES.items()}
    rows = []
    for line in lines:
        fields = describe_event(line.event)
        uuid = fields.pop("gpu", None)
        rows.append(
            (
                str(line.sequence),
                datetime.fromtimestamp(line.wall_seconds, UTC).strftime("%Y-%m-%d %H:%M:%S"),
                f"{line.at_seconds:.3f}",
                str(line.actor_pid),
                index_of.get(str(uuid), "-"),
                line.cause,
                f"{names[type(line.event)]} {_pairs(fields)}".rstrip(),
            )
        )
    return align(("#", "TIME (UTC)", "SECONDS", "PID", "GPU", "CAUSE", "CHANGE"), rows)


def _pairs(fields: dict[str, object]) -> str:
    flat: dict[str, object] = {}
    for name, value in fields.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return " ".join(f"{name}={value}" for name, value in flat.items() if value is not None)


def history_document(lines: Sequence[HistoryLine], path: Path) -> dict[str, object]:
    """The same as one JSON document."""
    names = {kind: name for name, kind in EVENT_NAMES.items()}
    return {
        "schema": HISTORY_SCHEMA,
        "path": str(path),
        "changes": [
            {
                "sequence": line.sequence,
                "at_seconds": line.at_seconds,
                "wall_seconds": line.wall_seconds,
                "actor_pid": line.actor_pid,
                "cause": line.cause,
                "change": names[type(line.event)],
                **describe_event(line.event),
            }
            for line in lines
        ],
    }
