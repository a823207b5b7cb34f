"""A run is its scenario, its number of nodes and its seed, and nothing else."""

import json
import os
import subprocess
import sys

import pytest

from esnode.clock import monotonic_seconds
from simulations import faults
from simulations.checkers import Checkers
from simulations.fleet import Fleet
from simulations.runner import play
from simulations.scenarios import SCENARIOS
from tests.architecture.source_files import ROOT


def digest(name: str, count: int, seed: int) -> str:
    report = play(SCENARIOS[name], count=count, seed=seed, wall_seconds=monotonic_seconds)
    return report.trace_digest


def test_the_same_seed_gives_the_same_trace_and_another_another() -> None:
    first, again, other = (digest("partition-heal", 8, seed) for seed in (7, 7, 8))

    assert first == again
    assert first != other


def run_crash(*, is_checked: bool, has_papers: bool) -> str:
    fleet = Fleet(8, rack_size=4, drift_ppm=100.0, has_papers=has_papers)
    if is_checked:
        Checkers(fleet)
    fleet.begin_old()
    fleet.network.change(loss_ratio=0.2)
    faults.crash(fleet.nodes[3], is_host_up=False)
    fleet.run_for(10.0)
    return fleet.world.trace_digest


@pytest.mark.parametrize("has_papers", [False, True], ids=["gossip", "peers"])
def test_checkers_change_nothing(has_papers: bool) -> None:
    digests = [
        run_crash(is_checked=is_checked, has_papers=has_papers) for is_checked in (True, False)
    ]

    assert digests[0] == digests[1]


@pytest.mark.parametrize("name", ["grey-failure", "invites"])
def test_the_hashes_of_texts_and_bytes_decide_nothing(name: str) -> None:
    command = ["run", name, "--nodes", "8", "--seed", "3", "--json"]
    reports = [
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "simulations", *command],
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for hash_seed in ("1", "2")
    ]

    assert reports[0]["trace_digest"] == reports[1]["trace_digest"]
    assert reports[0]["figures"] == reports[1]["figures"]
    assert reports[0]["trace_digest"] == digest(name, 8, 3)
