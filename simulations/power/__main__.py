"""`python -m simulations.power list`, or a scenario, `mistakes`, `explore` or `bench`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import NoReturn

from esnode.clock import monotonic_seconds
from simulations.power.explorer import PLANS, STATES_MAX, Explorer
from simulations.power.mistakes import MISTAKES
from simulations.power.outcome import SCHEMA, Outcome, Summary
from simulations.power.runner import Ticket, play_all
from simulations.power.scenarios import SCENARIOS

OK, VIOLATED, USAGE = 0, 1, 2
NODES_MIN, NODES_MAX = 4, 200
_LINE_SECONDS = 0.5

DESCRIPTION = """\
Racks under power faults in virtual time: the real ledger, and a checker that compares what the
hardware may draw with the budget after every event.

  python -m simulations.power list
  python -m simulations.power chaos --seeds 60 --jobs 2
  python -m simulations.power shift --nodes 40 --loss 0 --seeds 40 --json
  python -m simulations.power mistakes --seeds 40
  python -m simulations.power explore --states 100000
  python -m simulations.power bench

A run is repeated exactly by its scenario, its number of nodes, its loss and its seed. The exit code
is 0 if every promise was kept (for `mistakes`: if each mistake was caught), 1 if not, 2 for a wrong
command line.
"""
_BENCH = (
    ("shift", 16, 0.0),
    ("shift", 16, 0.2),
    ("shift", 40, 0.0),
    ("shift", 40, 0.2),
    ("cut", 16, 0.2),
    ("cut-two-dead", 16, 0.2),
    ("retire", 16, 0.2),
    ("retire-absent", 16, 0.2),
    ("partition", 16, 0.2),
    ("emergency", 16, 0.2),
    ("emergency", 40, 0.2),
    ("contrasts", 16, 0.0),
    ("contrasts", 40, 0.2),
    ("chaos", 16, 0.2),
    ("overlap", 16, 0.2),
)
"""Scenario, nodes and loss."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say it in one line."""
        sys.stderr.write(f"simulations.power: {message}; see --help\n")
        sys.exit(USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    options = _parser().parse_args(arguments)
    try:
        _check(options)
    except ValueError as error:
        sys.stderr.write(f"simulations.power: {error}\n")
        return USAGE
    match options.what:
        case "list":
            return _list()
        case "mistakes":
            return _mistakes(options)
        case "explore":
            return _explore(options)
        case "bench":
            several = [_play(options, what, nodes, loss) for what, nodes, loss in _BENCH]
            return VIOLATED if any(one.broken for one in several) else OK
        case what:
            return VIOLATED if _play(options, what, options.nodes, options.loss).broken else OK


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m simulations.power",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ("list", *SCENARIOS, "mistakes", "explore", "bench")
    parser.add_argument("what", choices=names, metavar="WHAT", help=", ".join(names))
    parser.add_argument("--nodes", type=int, default=16, metavar="N", help="how many (16)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which chance (1)")
    parser.add_argument("--seeds", type=int, default=1, metavar="K", help="so many, from S on (1)")
    parser.add_argument("--loss", type=float, default=0.2, metavar="R", help="part lost (0.2)")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="processes (1)")
    parser.add_argument("--mistake", default="", metavar="NAME", help="switch a mistake in")
    parser.add_argument("--plan", default="", metavar="NAME", help="explore this one only")
    parser.add_argument(
        "--states",
        type=int,
        default=STATES_MAX,
        metavar="N",
        help=f"explore so many ({STATES_MAX})",
    )
    parser.add_argument("--json", action="store_true", help="one document a line, for programs")
    return parser


def _check(options: argparse.Namespace) -> None:
    if not NODES_MIN <= options.nodes <= NODES_MAX:
        raise ValueError(f"--nodes {options.nodes}: {NODES_MIN} to {NODES_MAX} can be")
    if not 0.0 <= options.loss <= 0.9:
        raise ValueError(f"--loss {options.loss}: 0 to 0.9 can be")
    for name in ("seeds", "jobs", "states"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} is 1 or more")
    if options.mistake and options.mistake not in MISTAKES:
        raise ValueError(f"no mistake is called {options.mistake!r}: {', '.join(MISTAKES)}")
    if options.plan and options.plan not in PLANS:
        raise ValueError(f"nothing called {options.plan!r} can be explored: {', '.join(PLANS)}")


def _list() -> int:
    width = max(len(name) for name in (*SCENARIOS, *MISTAKES, *PLANS))
    for scenario in SCENARIOS.values():
        sys.stdout.write(f"{scenario.name:<{width}}  {scenario.summary}\n")
    sys.stdout.write("\nmistakes, to be switched in by --mistake:\n")
    for mistake in MISTAKES.values():
        sys.stdout.write(f"{mistake.name:<{width}}  {mistake.summary}\n")
    sys.stdout.write("\nto be explored, by --plan:\n")
    for plan in PLANS.values():
        sys.stdout.write(f"{plan.name:<{width}}  {plan.summary}\n")
    return OK


def _explore(options: argparse.Namespace) -> int:
    """Every interleaving of each plan, up to a number of states."""
    is_ok = True
    for plan in (PLANS[options.plan],) if options.plan else PLANS.values():
        began = monotonic_seconds()
        found = Explorer(plan).explore(options.states)
        is_ok = is_ok and not found.violations_total
        if options.json:
            sys.stdout.write(json.dumps({"schema": SCHEMA, **asdict(found)}) + "\n")
        else:
            covered = "all there are" if found.is_complete else "not all there are"
            sys.stdout.write(
                f"{plan.name}: {found.states_total} states ({covered}), {found.events_total} "
                f"events, {found.violations_total} violations "
                f"({monotonic_seconds() - began:.0f} s)\n"
            )
            for what, events in found.violations[:1]:
                steps = ", ".join(f"{name} {place}.{which}" for name, place, which in events)
                sys.stdout.write(f"  ! {what}, after: {steps}\n")
        sys.stdout.flush()
    return OK if is_ok else VIOLATED


def _play(
    options: argparse.Namespace, what: str, nodes: int, loss: float, mistake: str = ""
) -> Summary:
    mistake = mistake or options.mistake
    seeds = range(options.seed, options.seed + options.seeds)
    tickets = [
        Ticket(scenario=what, nodes=nodes, seed=seed, loss_ratio=loss, mistake=mistake)
        for seed in seeds
    ]
    progress = _Progress(mistake or what, len(tickets))

    def told(outcome: Outcome) -> None:
        progress.show()
        if options.json:
            progress.clear()
            sys.stdout.write(json.dumps(outcome.document()) + "\n")
            sys.stdout.flush()

    summary = play_all(tickets, jobs=options.jobs, wall_seconds=monotonic_seconds, told=told)
    progress.clear()
    if not mistake or options.mistake:
        text = json.dumps(summary.document()) if options.json else summary.table()
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    return summary


def _mistakes(options: argparse.Namespace) -> int:
    """Every mistake in the storm: whether the checker saw it."""
    is_each_caught = True
    for mistake in MISTAKES.values():
        summary = _play(options, "chaos", options.nodes, options.loss, mistake.name)
        broken = summary.broken
        is_each_caught = is_each_caught and bool(broken)
        kinds = sorted({one.promise for run in broken for one in run.violations})
        excess = max((run.figures.get("excess_watts") or 0 for run in broken), default=0)
        if not options.json:
            sys.stdout.write(
                f"{mistake.name:<26} caught in {len(broken)} of {len(summary.outcomes)} seeds; "
                f"worst excess {excess:.0f} W; {', '.join(kinds) or 'nothing'}\n"
            )
            sys.stdout.flush()
    return OK if is_each_caught else VIOLATED


class _Progress:
    """One line on a terminal that says how far it is."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._is_terminal = sys.stderr.isatty()
        self._written_seconds = monotonic_seconds()

    def show(self) -> None:
        """One more run is over."""
        self._done += 1
        now = monotonic_seconds()
        if self._is_terminal and now - self._written_seconds >= _LINE_SECONDS:
            self._written_seconds = now
            sys.stderr.write(f"\r{self._what}: {self._done} of {self._total} seeds")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._is_terminal:
            sys.stderr.write("\x1b[2K\r")


if __name__ == "__main__":
    sys.exit(main())
