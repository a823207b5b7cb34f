"""Stories of processes that come and go: joins, crashes, power, restarts, and nothing at all."""

from cluster.gossip.effects import Status
from simulations import faults
from simulations.node import Node
from simulations.sightings import AllSee
from simulations.stage import Stage

SILENT_FIRST_SECONDS_MIN = 5.5
"""A host that is silent is not given up before: a short pause looks the same."""


def mass_join(stage: Stage) -> None:
    """All start within 0.1 s and know one seed."""
    fleet = stage.build()

    fleet.start_all()
    limit = 3.0 if stage.count <= 100 else 30.0
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=limit)

    stage.measure(all_see_all_seconds=took)
    stage.measure(sent_bytes_per_node=sum(one.sent_bytes for one in fleet.nodes) / stage.count)
    stage.traffic(5.0)


def crash(stage: Stage) -> None:
    """One process dies and its machine is silent; another dies and its machine refuses."""
    stage.settle()
    silent, refused = stage.pick(2) if stage.count > 2 else stage.pick(1) * 2

    _fall(stage, [silent], "silent", is_host_up=False, within_seconds=12.0)
    if stage.count > 2:
        _fall(stage, [refused], "refused", is_host_up=True, within_seconds=6.0)


def rack_power_loss(stage: Stage) -> None:
    """A fifth of the fleet, rack by rack, loses power and gets it back; later it is only killed."""
    fleet = stage.settle()
    dark = fleet.nodes[-max(1, stage.count // 5) :]

    for word, is_host_up, limit in (("dark", False, 9.0), ("killed", True, 5.0)):
        _fall(stage, dark, word, is_host_up=is_host_up, within_seconds=limit)
        for node in dark:
            fleet.start(node)
        took = stage.demand("all see all again", AllSee(fleet, fleet.nodes), within_seconds=10.0)
        stage.checkers.vouch(*dark)
        fleet.run_for(8.0)
        stage.measure(**{f"{word}_back_seconds": took})


def rolling_restart(stage: Stage) -> None:
    """One after the other is stopped and started again half a second later, as in an upgrade."""
    fleet = stage.settle()
    began = fleet.now
    at_once = max(1, stage.count // 50)

    for first in range(0, stage.count, at_once):
        batch = fleet.nodes[first : first + at_once]
        stage.checkers.excuse(*batch)
        for node in batch:
            faults.crash(node, is_host_up=True)
        fleet.run_for(0.5)
        for node in batch:
            fleet.start(node, [other for other in fleet.nodes[:3] if other not in batch])
        fleet.run_for(1.0)
        stage.checkers.vouch(*batch)
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=10.0)

    failed = stage.count_changes(Status.FAILED, began)
    stage.require(failed == 0, f"a restart of half a second was taken for a failure {failed} times")
    stage.measure(
        failed_total=failed,
        all_see_all_seconds=took,
        epoch_min=min(node.epoch for node in fleet.nodes),
        suspicions_total=stage.count_changes(Status.SUSPECT, began),
    )


def idle(stage: Stage) -> None:
    """Sixty seconds in which nothing happens, without states: what membership alone costs."""
    fleet = stage.settle(has_states=False)
    began = fleet.now

    stage.traffic(60.0)

    suspicions = stage.count_changes(Status.SUSPECT, began)
    stage.require(suspicions == 0, f"{suspicions} suspicions, and nothing had happened")
    stage.measure(suspicions_total=suspicions)


def _fall(
    stage: Stage, victims: list[Node], word: str, *, is_host_up: bool, within_seconds: float
) -> None:
    fleet = stage.fleet
    began = fleet.now
    observers = [node for node in stage.others(*victims) if node.core is not None]

    stage.checkers.excuse(*victims)
    for node in victims:
        faults.crash(node, is_host_up=is_host_up)
    stage.demand(
        f"all know that {len(victims)} {word} have failed",
        _AllGaveUp(stage, observers, victims),
        within_seconds=within_seconds,
    )
    fleet.run_for(1.0)

    suspect, _, _ = stage.first_and_last(Status.SUSPECT, victims, began)
    first, last, _ = stage.first_and_last(Status.FAILED, victims, began)
    if not is_host_up and first is not None:
        stage.require(
            first >= SILENT_FIRST_SECONDS_MIN,
            f"a silent host was given up after {first:.2f} s, before {SILENT_FIRST_SECONDS_MIN} s",
        )
    stage.measure(
        **{
            f"{word}_first_suspect_seconds": suspect,
            f"{word}_first_failed_seconds": first,
            f"{word}_all_failed_seconds": last,
        }
    )


class _AllGaveUp:
    """Whether all observers have given up all victims."""

    def __init__(self, stage: Stage, observers: list[Node], victims: list[Node]) -> None:
        self._fleet = stage.fleet
        self._pairs = [(one, other.node_id) for one in observers for other in victims]
        self._changes_total = -1

    def __call__(self) -> bool:
        if self._fleet.changes_total == self._changes_total:
            return False
        self._changes_total = self._fleet.changes_total
        while self._pairs:
            observer, victim = self._pairs[-1]
            if observer.knows_of(victim) is not Status.FAILED:
                return False
            self._pairs.pop()
        return True
