"""Plays one scenario and reports.

Its own file because the command line and tests play alike. The wall clock is handed in; it is only
reported, nothing depends on it.
"""

import traceback
from collections.abc import Callable

from simulations.report import Report
from simulations.scenarios import Scenario
from simulations.stage import Stage


def play(
    scenario: Scenario,
    *,
    count: int,
    seed: int,
    wall_seconds: Callable[[], float],
    progress: Callable[[float], None] | None = None,
) -> Report:
    """One run. An error in a core is a violation as well, with the place where it happened."""
    began = wall_seconds()
    stage = Stage(count, seed, progress=progress)
    try:
        scenario.tell(stage)
        stage.checkers.check_all()
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        stage.checkers.accuse("all", f"{type(error).__name__} at {place}: {error}")
    fleet, checkers = stage.fleet, stage.checkers
    return Report(
        scenario=scenario.name,
        nodes=count,
        seed=seed,
        violations=tuple(checkers.violations),
        violations_total=checkers.violations_total,
        trace_digest=fleet.world.trace_digest,
        virtual_seconds=fleet.now,
        wall_seconds=wall_seconds() - began,
        figures=dict(stage.figures),
    )
