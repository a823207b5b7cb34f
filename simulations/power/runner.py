"""Plays many seeds of one scenario, on as many cores as are given.

Its own file because the command line and whoever measures play alike. The wall clock is handed in;
nothing depends on it.
"""

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from simulations.power.checker import Violation
from simulations.power.mistakes import MISTAKES
from simulations.power.outcome import Outcome, Summary
from simulations.power.runs import Run
from simulations.power.scenarios import SCENARIOS
from simulations.power.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One run that is to be played, as it can be sent to another process."""

    scenario: str
    nodes: int
    seed: int
    loss_ratio: float
    mistake: str = ""


def play(ticket: Ticket) -> Outcome:
    """One run. An error in the code is a violation as well, with its place."""
    make = MISTAKES[ticket.mistake].make if ticket.mistake else Site
    run = Run(nodes=ticket.nodes, seed=ticket.seed, loss_ratio=ticket.loss_ratio, make=make)
    try:
        outcome = SCENARIOS[ticket.scenario].play(run)
        return replace(outcome, mistake=ticket.mistake)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        return Outcome(
            scenario=ticket.scenario,
            nodes=ticket.nodes,
            seed=ticket.seed,
            loss_ratio=ticket.loss_ratio,
            mistake=ticket.mistake,
            violations=(Violation(0.0, "error", f"{type(error).__name__} at {place}: {error}"),),
            violations_total=1,
            virtual_seconds=0.0,
            figures={},
        )


def play_all(
    tickets: Sequence[Ticket],
    *,
    jobs: int,
    wall_seconds: Callable[[], float],
    told: Callable[[Outcome], None] | None = None,
) -> Summary:
    """All of them, in order; `told` hears of each as it comes."""
    began = wall_seconds()
    outcomes: list[Outcome] = []
    if jobs == 1:
        for ticket in tickets:
            outcomes.append(play(ticket))
            if told is not None:
                told(outcomes[-1])
    else:
        with multiprocessing.Pool(jobs) as pool:
            for outcome in pool.imap(play, tickets):
                outcomes.append(outcome)
                if told is not None:
                    told(outcome)
    return Summary(outcomes=outcomes, wall_seconds=wall_seconds() - began)
