"""Stories of machines that stop, stutter and lag; the network is sound."""

from cluster.gossip.effects import Status
from simulations import faults
from simulations.node import Node
from simulations.sightings import AllSee, status_of
from simulations.stage import Stage

_WORK_SECONDS = (0.02, 0.14)
"""Of a slow machine for each datagram; a sound one takes less than a thousandth."""


def pauses(stage: Stage) -> None:
    """A tenth stops for 5 s, and later for 10 and for 20 s, as by SIGSTOP."""
    fleet = stage.settle()

    for seconds in (5, 10, 20):
        paused = stage.share(0.1)
        began = fleet.now
        stage.checkers.excuse(*paused)
        for node in paused:
            faults.pause(node)
        fleet.run_for(float(seconds))
        for node in paused:
            faults.resume(fleet, node)
        within = 0.5 if seconds <= 5 else 2.0
        took = stage.demand("all see all again", AllSee(fleet, fleet.nodes), within_seconds=within)
        fleet.run_for(7.0)
        stage.checkers.vouch(*paused)
        failed = stage.count_changes(Status.FAILED, began)
        stage.require(seconds > 5 or failed == 0, f"a pause of 5 s was taken for the end {failed}x")
        accused = _accused(stage, began, paused)
        stage.require(accused == 0, f"{accused} healthy nodes were suspected")
        stage.measure(
            **{
                f"pause_{seconds}_s_failed_total": failed,
                f"pause_{seconds}_s_healthy_suspected_total": accused,
                f"pause_{seconds}_s_healed_seconds": took,
            }
        )


def flapping(stage: Stage) -> None:
    """A tenth runs half a second and stops four, again and again; it shall never look well."""
    fleet = stage.settle()
    bad = stage.share(0.1)
    observer = stage.others(*bad)[0]
    began = fleet.now
    shown: list[Status | None] = []

    stage.checkers.excuse(*bad)
    for turn in range(8):
        for node in bad:
            faults.pause(node)
        fleet.run_for(4.0)
        for node in bad:
            faults.resume(fleet, node)
        fleet.run_for(0.5)
        if turn >= 3:
            shown.extend(status_of(fleet, observer, node) for node in bad)
    failed = stage.count_changes(Status.FAILED, began)
    well = sum(one is Status.ALIVE for one in shown)
    stage.require(well == 0, f"shown as well {well} of {len(shown)} times while it flapped")
    recovered = stage.demand(
        "all look well again", _LooksWell(stage, observer, bad), within_seconds=240.0
    )

    stage.measure(
        failed_total=failed,
        suspicions_total=stage.count_changes(Status.SUSPECT, began),
        shown_unwell_ratio=1.0 - well / len(shown),
        looks_well_again_seconds=recovered,
    )


def slow_cpus(stage: Stage) -> None:
    """A fifth takes up to 140 ms for each datagram, more than it has; the others are quick."""
    fleet = stage.settle()
    lagging = stage.share(0.2)
    began = fleet.now

    stage.checkers.excuse(*lagging)
    for node in lagging:
        faults.slow(fleet, node, _WORK_SECONDS)
    stage.traffic(30.0)
    failed = stage.count_changes(Status.FAILED, began)
    accused = _accused(stage, began, lagging)
    for node in lagging:
        faults.speed_up(fleet, node)
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=5.0)
    fleet.run_for(8.0)
    stage.checkers.vouch(*lagging)

    stage.measure(
        slow_failed_total=failed,
        quick_suspected_total=accused,
        queue_dropped_total=sum(node.dropped_total for node in lagging),
        recovered_seconds=took,
    )


def _accused(stage: Stage, began: float, guilty: list[Node]) -> int:
    """How many of the others were suspected by one of the others since then."""
    fleet = stage.fleet
    sound = {node.node_id: None for node in stage.others(*guilty)}
    return sum(
        when >= began and change.after is Status.SUSPECT and change.node_id in sound
        for node in fleet.nodes
        if node.node_id in sound
        for when, change in node.told.changes
    )


class _LooksWell:
    """Whether one shows all of these as alive; looked at once a second."""

    def __init__(self, stage: Stage, observer: Node, nodes: list[Node]) -> None:
        self._fleet, self._observer, self._nodes = stage.fleet, observer, nodes
        self._next_seconds = 0.0

    def __call__(self) -> bool:
        if self._fleet.now < self._next_seconds:
            return False
        self._next_seconds = self._fleet.now + 1.0
        return all(
            status_of(self._fleet, self._observer, node) is Status.ALIVE for node in self._nodes
        )
