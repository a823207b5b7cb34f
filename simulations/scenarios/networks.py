"""Stories of networks that lose, cut and only half work; no machine is at fault."""

from cluster.gossip.effects import Status
from simulations import faults
from simulations.network import CUT, Way
from simulations.sightings import AllSee, status_of, view_of
from simulations.stage import Stage

_LOSS_SECONDS = 60.0
_CUT_SECONDS = 15.0
_HEALED_SECONDS = 10.0
_GREY = Way(loss_ratio=0.4, delay_min_seconds=0.05, delay_max_seconds=0.4)
_APART = 1


def loss(stage: Stage) -> None:
    """A tenth, then a quarter of all datagrams are lost, some doubled or late; a minute each."""
    fleet = stage.settle()

    for percent in (10, 25):
        began = fleet.now
        fleet.network.change(loss_ratio=percent / 100, duplicate_ratio=0.02, overtaken_ratio=0.05)
        stage.traffic(_LOSS_SECONDS, prefix=f"loss_{percent}_percent_")
        stage.measure(
            **{
                f"loss_{percent}_percent_suspicions_total": stage.count_changes(
                    Status.SUSPECT, began
                ),
                f"loss_{percent}_percent_failed_total": stage.count_changes(Status.FAILED, began),
            }
        )
    fleet.network.change(loss_ratio=0.0, duplicate_ratio=0.0, overtaken_ratio=0.0)
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=_HEALED_SECONDS)

    stage.measure(all_see_all_seconds=took)


def states(stage: Stage) -> None:
    """Each says how it is once a second, a twentieth is lost: how old is what its mates know."""
    fleet = stage.settle()
    fleet.network.change(loss_ratio=0.05)
    ages: list[float] = []
    received = [node.received_bytes for node in fleet.nodes]
    seconds = 20

    for _ in range(seconds):
        fleet.run_for(1.0)
        for node in stage.pick(20, among=fleet.nodes):
            mates = [
                one for one in view_of(fleet, node).members if one.rack == node.introduction.rack
            ]
            ages.extend(one.state_age_seconds for one in mates if one.state_age_seconds is not None)
            missing = sum(one.state_age_seconds is None for one in mates)
            stage.require(missing == 0, f"{node.name} knows no state of {missing} mates")

    ages.sort()
    if ages:
        worst = ages[int(0.99 * (len(ages) - 1))]
        stage.require(worst <= 2.0, f"one state in a hundred is older than {worst:.2f} s")
        stage.measure(age_p50_seconds=ages[len(ages) // 2], age_p99_seconds=worst)
    now = [node.received_bytes for node in fleet.nodes]
    taken = sum(now) - sum(received)
    stage.measure(received_bytes_per_node_per_second=taken / seconds / stage.count)


def partition_heal(stage: Stage) -> None:
    """Half is cut from half for 15 s, so that each gives the other up; then the cut heals."""
    fleet = stage.settle()
    began = fleet.now
    here, there = fleet.nodes[: stage.count // 2], fleet.nodes[stage.count // 2 :]

    faults.cut_off(fleet, there, side=_APART)
    fleet.run_for(_CUT_SECONDS)
    given_up = sum(
        one.knows_of(other.node_id) is Status.FAILED
        for side, beyond in ((here, there), (there, here))
        for one in side
        for other in beyond
    )
    stage.checkers.excuse(*fleet.nodes)
    fleet.network.heal()
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=_HEALED_SECONDS)
    fleet.run_for(1.0)
    stage.checkers.vouch(*fleet.nodes)
    healed = fleet.now
    fleet.run_for(8.0)

    stage.require(stage.count_changes(Status.FAILED, healed) == 0, "given up after the cut healed")
    first, last, _ = stage.first_and_last(Status.FAILED, fleet.nodes, began)
    stage.measure(
        first_failed_seconds=first,
        last_failed_seconds=last,
        given_up_ratio=given_up / max(1, 2 * len(here) * len(there)),
        healed_seconds=took,
    )


def one_way_loss(stage: Stage) -> None:
    """A few hear nobody though all hear them, then the other way round; nobody else may suffer."""
    fleet = stage.settle()
    odd = stage.share(0.05)

    for word, sender, receiver in (("deaf", 0, _APART), ("mute", _APART, 0)):
        began = fleet.now
        stage.checkers.excuse(*odd)
        for node in odd:
            fleet.network.put(node.address, _APART)
        fleet.network.lead(sender, receiver, CUT)
        fleet.run_for(20.0)
        suspect, _, _ = stage.first_and_last(Status.SUSPECT, odd, began)
        failed, _, _ = stage.first_and_last(Status.FAILED, odd, began)
        fleet.network.heal()
        took = stage.demand(
            f"all see all, none is {word} any more",
            AllSee(fleet, fleet.nodes),
            within_seconds=_HEALED_SECONDS,
        )
        fleet.run_for(8.0)
        stage.checkers.vouch(*odd)
        stage.measure(
            **{
                f"{word}_first_suspect_seconds": suspect,
                f"{word}_first_failed_seconds": failed,
                f"{word}_healed_seconds": took,
            }
        )


def grey_failure(stage: Stage) -> None:
    """The network cards of a few lose 40 % and delay the rest; they shall look it, others not."""
    fleet = stage.settle()
    grey = stage.share(0.1)
    began = fleet.now

    stage.checkers.excuse(*grey)
    for node in grey:
        fleet.network.put(node.address, _APART)
    for one, other in ((0, _APART), (_APART, 0), (_APART, _APART)):
        fleet.network.lead(one, other, _GREY)
    shown: list[Status | None] = []
    for _ in range(6):
        fleet.run_for(5.0)
        observer = stage.others(*grey)[0]
        shown.extend(status_of(fleet, observer, node) for node in grey)
    failed = stage.count_changes(Status.FAILED, began)
    stage.traffic(5.0)
    fleet.network.heal()
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=_HEALED_SECONDS)
    fleet.run_for(8.0)
    stage.checkers.vouch(*grey)

    stage.measure(
        shown_unwell_ratio=sum(one is not Status.ALIVE for one in shown) / len(shown),
        failed_total=failed,
        suspicions_total=stage.count_changes(Status.SUSPECT, began),
        healed_seconds=took,
    )
