"""`python -m tests.benchmarks.gossip [--n 10,50] [--scenarios join,crash] [--runs K] ...`."""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from tests.benchmarks.gossip import namespace, scenarios
from tests.benchmarks.gossip.fleet import Fleet
from tests.benchmarks.gossip.ours import OurFleet
from tests.benchmarks.gossip.rows import Results, print_table
from tests.benchmarks.gossip.scenarios import JOIN_SECONDS, STATE_BYTES, Figures
from tests.benchmarks.gossip.serf import SerfFleet
from tests.benchmarks.measuring import machine_line

RACK_SIZE = 10
HELD_SECONDS = 1.5
"""Between the start of the last process and the beginning, so that all are at rest."""
Deed = Callable[[Fleet, random.Random], Figures]


def deeds(window_seconds: float, loss_seconds: float) -> dict[str, Deed]:
    """In racks of ten, as they are in service: our nodes publish their states."""
    return {
        "idle": lambda fleet, _: scenarios.idle(fleet, seconds=window_seconds),
        "crash": scenarios.crash,
        "silent": scenarios.silent,
        "rack-refused": scenarios.rack_refused,
        "rack-silent": scenarios.rack_silent,
        "pause": scenarios.pause,
        "loss-10": lambda fleet, _: scenarios.loss(fleet, 0.10, seconds=loss_seconds),
        "loss-25": lambda fleet, _: scenarios.loss(fleet, 0.25, seconds=loss_seconds),
    }


def one_rack_deeds(window_seconds: float) -> dict[str, Deed]:
    """All in one rack, which all states have to cross."""
    return {
        "cost": lambda fleet, _: scenarios.publishing_cost(fleet, seconds=window_seconds),
        "state": lambda fleet, _: scenarios.staleness(fleet, seconds=window_seconds),
    }


REPEATED = ("crash", "silent")


class Bench:
    """Runs fleets one after another and gathers figures."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results: Results = {}
        self.rng = random.Random(options.seed)

    def note(self, scenario: str, count: int, side: str, figures: Figures) -> None:
        shown = {key: None if one is None else round(one, 3) for key, one in figures.items()}
        print(f"{scenario}, {count} nodes, {side}: {shown}", file=sys.stderr, flush=True)
        held = self.results.setdefault((scenario, count), {}).setdefault(side, {})
        for name, value in figures.items():
            held.setdefault(name, []).append(value)

    def fleets(self, count: int, rack_size: int, folder: Path) -> Iterable[Callable[[], Fleet]]:
        """Ours and the peer's, to be made one after the other."""
        yield lambda: OurFleet(count, folder, rack_size=rack_size)
        if self.options.peer == "serf":
            yield lambda: SerfFleet(count, folder)

    def run(self, count: int, rack_size: int, wanted: dict[str, Deed]) -> None:
        """One turn of each side."""
        with tempfile.TemporaryDirectory() as name:
            for make in self.fleets(count, rack_size, Path(name)):
                fleet = make()
                try:
                    self._run(fleet, wanted)
                finally:
                    fleet.close()

    def _run(self, fleet: Fleet, wanted: dict[str, Deed]) -> None:
        note = partial(self.note, count=fleet.count, side=fleet.name)
        fleet.start()
        time.sleep(HELD_SECONDS)
        note("join", figures={"all see all": fleet.join(JOIN_SECONDS)})
        for scenario, deed in wanted.items():
            times = self.options.repeats if scenario in REPEATED else 1
            for _ in range(times):
                if isinstance(fleet, OurFleet) and scenario not in ("idle", "cost", "state"):
                    fleet.publish(STATE_BYTES)
                    time.sleep(2.0)
                if not fleet.wait(fleet.is_full, 90.0):
                    print(f"{scenario}: not all see all before it", file=sys.stderr)
                note(scenario, figures=deed(fleet, self.rng))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gossip")
    known = ["join", *deeds(0, 0), *one_rack_deeds(0)]
    parser.add_argument("--n", default="10,50", help="numbers of nodes, in racks of ten")
    parser.add_argument("--one-rack", default="16,50", help="the same, all in one rack")
    parser.add_argument("--scenarios", default=",".join(known), help="some of " + ", ".join(known))
    parser.add_argument("--runs", type=int, default=1, help="turns of each side")
    parser.add_argument("--joins", type=int, default=5, help="mass joins of each side, at least")
    parser.add_argument("--repeats", type=int, default=3, help="deaths in a turn")
    parser.add_argument("--window", type=float, default=30.0, help="seconds of quiet measuring")
    parser.add_argument("--loss-window", type=float, default=120.0, help="seconds of loss")
    parser.add_argument("--peer", choices=["serf", "none"], default="serf")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write every figure of every run here")
    options = parser.parse_args()
    options.scenarios = options.scenarios.split(",")
    if unknown := sorted(set(options.scenarios) - set(known)):
        parser.error(f"unknown scenarios: {', '.join(unknown)}; there are {', '.join(known)}")
    options.n = [int(one) for one in options.n.split(",") if one]
    options.one_rack = [int(one) for one in options.one_rack.split(",") if one]
    return options


def main() -> None:
    options = parse()
    programs = ["ip", "nft", *(["serf"] if options.peer == "serf" else [])]
    if line := namespace.missing_line(*programs):
        raise SystemExit(f"this benchmark {line}")
    namespace.enter()
    print(machine_line())
    bench = Bench(options)
    spread = deeds(options.window, options.loss_window)
    in_one = one_rack_deeds(options.window)
    wanted = {name: deed for name, deed in spread.items() if name in options.scenarios}
    wanted_in_one = {name: deed for name, deed in in_one.items() if name in options.scenarios}
    for count in options.n:
        turns = options.runs if wanted else 0
        for _ in range(turns):
            bench.run(count, RACK_SIZE, wanted)
        if "join" in options.scenarios:
            for _ in range(options.joins - turns):
                bench.run(count, RACK_SIZE, {})
    for count in options.one_rack if wanted_in_one else []:
        for _ in range(options.runs):
            bench.run(count, count, wanted_in_one)
    print(machine_line())
    print()
    print_table(bench.results)
    if options.json is not None:
        results = [
            {"scenario": scenario, "nodes": count, "sides": sides}
            for (scenario, count), sides in bench.results.items()
        ]
        document = {"machine": machine_line(), "results": results}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
