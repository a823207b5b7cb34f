"""`python -m simulations list` and `python -m simulations run SCENARIO`."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from esnode.clock import monotonic_seconds
from simulations.report import Report
from simulations.runner import play
from simulations.scenarios import NODES_MAX, NODES_MIN, SCENARIOS, Scenario

OK, VIOLATED, USAGE = 0, 1, 2
_NODES = 50
_SILENT_SECONDS = 1.0
_LINE_SECONDS = 0.2

DESCRIPTION = """\
Fleets of the cluster's real code in virtual time, with faults by seed.

  python -m simulations list
  python -m simulations run crash
  python -m simulations run loss --nodes 100 --seed 7
  python -m simulations run pauses --seeds 20 --json

A run is repeated exactly by its scenario, its number of nodes and its seed. The exit code is 0 if
nothing went wrong, 1 if something did, 2 for a wrong command line. See docs/simulation.md.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say it in one line."""
        sys.stderr.write(f"simulations: {message}; see --help\n")
        sys.exit(USAGE)


class Progress:
    """One line on a terminal that says how far a long run has come."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began_seconds = monotonic_seconds()
        self._written_seconds = self._began_seconds
        self._is_terminal = sys.stderr.isatty()
        self._is_written = False

    def show(self, virtual_seconds: float) -> None:
        """So much of the fleet's time has passed."""
        now = monotonic_seconds()
        every = _LINE_SECONDS if self._is_terminal else 10.0
        is_early = now - self._began_seconds < _SILENT_SECONDS
        if is_early or (self._is_written and now - self._written_seconds < every):
            return
        self._is_written, self._written_seconds = True, now
        wall = now - self._began_seconds
        end = "\r" if self._is_terminal else "\n"
        sys.stderr.write(f"{self._what}: {virtual_seconds:.1f} s of the fleet, {wall:.0f} s{end}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._is_written and self._is_terminal:
            sys.stderr.write("\x1b[2K\r")


def main(
    arguments: Sequence[str] | None = None, scenarios: Mapping[str, Scenario] = SCENARIOS
) -> int:
    """Do what the command line says."""
    options = _parser().parse_args(arguments)
    if options.command == "list":
        return _list(scenarios)
    return _run(options, scenarios)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m simulations",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="list | run")
    commands.add_parser("list", help="name the scenarios and say what happens in each")
    run = commands.add_parser("run", help="play a scenario and report")
    run.add_argument("scenario", metavar="SCENARIO", help="one of those that `list` names")
    run.add_argument("--nodes", metavar="N", default=str(_NODES), help=f"how many ({_NODES})")
    run.add_argument("--seed", metavar="S", default="1", help="which chance, a whole number (1)")
    run.add_argument("--seeds", metavar="K", default="1", help="so many seeds, from S on (1)")
    run.add_argument("--json", action="store_true", help="one report a line, for programs")
    return parser


def _list(scenarios: Mapping[str, Scenario]) -> int:
    width = max(len(name) for name in scenarios)
    for scenario in scenarios.values():
        sys.stdout.write(f"{scenario.name:<{width}}  {scenario.summary}\n")
    return OK


def _run(options: argparse.Namespace, scenarios: Mapping[str, Scenario]) -> int:
    try:
        scenario = _scenario(options.scenario, scenarios)
        count = _nodes(options.nodes, scenario)
        first = _whole(options.seed, "--seed", 0)
        seeds = range(first, first + _whole(options.seeds, "--seeds", 1))
    except ValueError as error:
        sys.stderr.write(f"simulations: {error}\n")
        return USAGE
    is_ok = True
    for seed in seeds:
        report = _play(scenario, count, seed)
        is_ok = is_ok and report.is_ok
        text = json.dumps(report.document()) if options.json else report.table()
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        if options.json and not report.is_ok:
            sys.stderr.write(f"to repeat: {report.repeat}\n")
    return OK if is_ok else VIOLATED


def _play(scenario: Scenario, count: int, seed: int) -> Report:
    progress = Progress(f"{scenario.name}, {count} nodes, seed {seed}")
    report = play(
        scenario,
        count=count,
        seed=seed,
        wall_seconds=monotonic_seconds,
        progress=progress.show,
    )
    progress.clear()
    return report


def _scenario(name: str, scenarios: Mapping[str, Scenario]) -> Scenario:
    scenario = scenarios.get(name)
    if scenario is None:
        raise ValueError(f"no scenario is called {name!r}; there are: {', '.join(scenarios)}")
    return scenario


def _nodes(text: str, scenario: Scenario) -> int:
    count = _whole(text, "--nodes", NODES_MIN)
    if count > NODES_MAX:
        raise ValueError(f"--nodes {count}: at most {NODES_MAX}")
    if not scenario.nodes_min <= count <= scenario.nodes_max:
        bounds = f"{scenario.nodes_min} to {scenario.nodes_max}"
        raise ValueError(f"--nodes {count}: {scenario.name} is told for {bounds} nodes")
    return count


def _whole(text: str, option: str, lowest: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < lowest:
        raise ValueError(f"{option} {text!r}: a whole number from {lowest} on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
