"""`python -m tests.soak.power`: real agents of one rack, faults from a seed, and a witness.

Ends with 0 only if the machines could at no instant draw more than the budget less its margin.
With root it runs among mounts of its own, so that disks can be filled.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from esnode.cli.power_text import ENFORCED
from tests.power_racks import boottime_seconds
from tests.soak import disks
from tests.soak.faults import BACKUP, FULL, WEIGHTS, Faults
from tests.soak.machines import SoakRack
from tests.soak.shifts import Shifts

MOUNTED, NO_DISKS = "ESNODE_SOAK_MOUNTED", "ESNODE_SOAK_NO_DISKS"
"""Whether this program was started anew among mounts of its own, or why it was not."""
NONE = "none"
TICK_SECONDS = 0.1
PROGRESS_SECONDS = 10.0
BACKUP_TAKEN_RATIO, BACKUP_USED_RATIO = 0.15, 0.5
SETTLING_SECONDS = 12.0
"""After the last fault, until everybody is asked how it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one soak has found."""

    seed: int
    nodes: int
    seconds: float
    budget_watts: int
    allowed_watts: float
    worst_watts: float | None
    instants: int
    over: int
    overs: list[dict[str, float]]
    faults: dict[str, int]
    left_out: dict[str, str]
    shifts: int
    follow_quiet_seconds: dict[str, float | int | None]
    """Of moves during which nobody was broken."""
    follow_seconds: dict[str, float | int | None]
    states: dict[str, str]
    """What each node says of itself at the end."""
    grades: list[str]
    set_back: str
    """Whose ledger was replaced by an old copy; empty for nobody."""
    tracebacks: int
    waits_for_disk: int
    cuts: int
    """How often a torn end of a ledger was cut off, and told."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether everything was as promised."""
        is_set_back_told = not self.set_back or self.states[self.set_back] == "quarantined"
        return not self.over and not self.tracebacks and is_set_back_told and self.instants > 0


def percentiles(values: Sequence[float]) -> dict[str, float | int | None]:
    """How many, the middle, and what 95 % are below."""
    ordered = sorted(values)

    def at(ratio: float) -> float | None:
        place = min(len(ordered) - 1, int(ratio * len(ordered)))
        return round(ordered[place], 2) if ordered else None

    return {"count": len(ordered), "p50": at(0.5), "p95": at(0.95), "max": at(1.0)}


def run(options: argparse.Namespace, folder: Path) -> Report:
    """One soak, from the first agent to the last word of the witness."""
    rng = random.Random(options.seed)
    kinds = tuple(options.faults.split(","))
    left_out = {}
    has_disks = MOUNTED in os.environ and FULL in kinds
    if FULL in kinds and not has_disks:
        left_out[FULL] = os.environ.get(NO_DISKS, "")
        kinds = tuple(kind for kind in kinds if kind != FULL)
    with ExitStack() as stack:
        rack = SoakRack(folder, stack, options.nodes, has_disks=has_disks)
        rack.form()
        rack.found()
        tell(f"{options.nodes} agents hold {rack.budget_watts:,} W; faults: {', '.join(kinds)}")
        faults = Faults(rack, random.Random(rng.getrandbits(64)), kinds)
        shifts = Shifts(rack, random.Random(rng.getrandbits(64)))
        _soak(rack, faults, shifts, options.seconds, has_backup=BACKUP in kinds)
        states = {name: _state(rack.told(name)) for name in rack.names}
        grades = [_grade(rack.told(name)) for name in rack.names]
        ends = boottime_seconds()
        for agent in rack.agents.values():
            agent.end()
        return _report(rack, faults, shifts, options, ends, (states, grades, left_out))


def _soak(
    rack: SoakRack, faults: Faults, shifts: Shifts, seconds: float, *, has_backup: bool
) -> None:
    began = boottime_seconds()
    ends = began + seconds
    witness, told = rack.witness(), began
    is_set_back = not has_backup
    while (now := boottime_seconds()) < ends:
        shifts.play(now)
        faults.play(now, ends_seconds=ends)
        if has_backup and not faults.quarantined and now > began + BACKUP_TAKEN_RATIO * seconds:
            faults.take_backup(rack.names[-1])
        if not is_set_back and now > began + BACKUP_USED_RATIO * seconds:
            faults.set_back(now)
            is_set_back = True
        if now - told >= PROGRESS_SECONDS:
            told = now
            seen = witness.look(now)
            tell(
                f"{now - began:5.0f} s  limits in force {seen.now_watts or 0:,.0f} W of "
                f"{rack.allowed_watts:,.0f} W, at most {seen.worst_watts or 0:,.0f} W; "
                f"{seen.instants:,} instants, {seen.over} over; faults {dict(faults.counts)}"
            )
        time.sleep(TICK_SECONDS)
    faults.end()
    time.sleep(SETTLING_SECONDS)


def _report(
    rack: SoakRack,
    faults: Faults,
    shifts: Shifts,
    options: argparse.Namespace,
    ends: float,
    said: tuple[dict[str, str], list[str], dict[str, str]],
) -> Report:
    verdict = rack.verdict()
    quiet: list[float] = []
    every: list[float] = []
    for shift, until in zip(
        shifts.done, [*(one.at_seconds for one in shifts.done[1:]), ends], strict=True
    ):
        took = shifts.follow_seconds(shift, until)
        if took is not None:
            every.append(took)
            quiet += [took] if faults.was_quiet(shift.at_seconds, until) else []
    states, grades, left_out = said
    return Report(
        seed=options.seed,
        nodes=options.nodes,
        seconds=options.seconds,
        budget_watts=rack.budget_watts,
        allowed_watts=round(rack.allowed_watts, 1),
        worst_watts=None if verdict.worst_watts is None else round(verdict.worst_watts, 1),
        instants=verdict.instants,
        over=verdict.over,
        overs=[asdict(one) for one in verdict.overs],
        faults=dict(faults.counts),
        left_out=left_out,
        shifts=len(shifts.done),
        follow_quiet_seconds=percentiles(quiet),
        follow_seconds=percentiles(every),
        states=states,
        grades=grades,
        set_back=faults.quarantined,
        tracebacks=rack.log_lines("Traceback"),
        waits_for_disk=rack.log_lines("the power ledger waits for the disk"),
        cuts=rack.log_lines("cut a damaged end"),
    )


def _state(told: dict[str, Any] | None) -> str:
    return "silent" if told is None else str(told["state"])


def _grade(told: dict[str, Any] | None) -> str:
    """With what it says of those who do not hold the promise."""
    if told is None:
        return "-"
    waiting = [
        f"{slot['node']} {slot['state']}: {slot['why']}"
        for one in told["currencies"]
        for slot in one["slots"]
        if slot["state"] not in ENFORCED
    ]
    return " ".join([*(str(one["grade"]) for one in told["currencies"]), *waiting])


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.power", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, help="in the place of --minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--faults", default=",".join((*WEIGHTS, BACKUP)), metavar="KIND,...")
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    options = parser.parse_args(arguments)
    known = (*WEIGHTS, BACKUP, NONE)
    if unknown := sorted(set(options.faults.split(",")) - {*known}):
        parser.error(f"no fault {', '.join(unknown)}; there are {', '.join(known)}")
    options.seconds = options.seconds or 60.0 * options.minutes
    return options


def main() -> None:
    options = parse(sys.argv[1:])
    folder = Path(tempfile.mkdtemp(prefix="esnode-soak-")) if options.keep is None else options.keep
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if MOUNTED not in os.environ and NO_DISKS not in os.environ:
            why = disks.why_none(folder)
            _again(folder, {NO_DISKS: why} if why else {MOUNTED: "1"})
        report = run(options, folder)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(asdict(report), indent=2))
    sys.exit(0 if report.is_good else 1)


def _again(folder: Path, environment: dict[str, str]) -> None:
    """Run this program anew, where it may among mounts of its own; ends with its code."""
    command = [sys.executable, "-m", "tests.soak.power", *sys.argv[1:]]
    if "--keep" not in sys.argv:
        command += ["--keep", str(folder)]
    if MOUNTED in environment:
        command = ["unshare", "--mount", *command]
    process = subprocess.Popen(command, env=os.environ | environment)
    signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
    sys.exit(process.wait())


if __name__ == "__main__":
    main()
