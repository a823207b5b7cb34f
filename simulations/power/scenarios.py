"""What can be played in a rack, and what is measured of it.

Its own file because it is the list that people choose from. Each scenario is one run of one seed;
the promise is checked after every event of all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from cluster.ids import NodeId
from simulations.power.contrasts import CONTRASTS, TRACE_SECONDS, Meter, draw_trace
from simulations.power.desk import FEED, FLOOR_WATTS
from simulations.power.gangs import form_gangs, spread_of
from simulations.power.machine import MAXIMUM_WATTS
from simulations.power.measure import (
    draw_watts,
    ideal_among,
    ideal_of_rack,
    missing_watts,
    unserved_watts,
)
from simulations.power.node import SETTLE_SECONDS, PowerNode
from simulations.power.outcome import Figure, Outcome
from simulations.power.parted import TwoOperators
from simulations.power.runs import Played, Run
from simulations.power.setbacks import SetBacks, is_held
from simulations.power.site import Site
from simulations.power.storm import STEP_CRASH_RATIO, Storm

STEP_SECONDS = 0.05
WARM_SECONDS = 40.0
WATCH_SECONDS = 60.0
DEADBAND_WATTS = 40
IDEAL_CENTRAL_SECONDS = 0.03 + SETTLE_SECONDS + 0.03 + 0.01
"""One lowering, its settling, one raise, two hops: nobody can be faster."""
METER_SECONDS = 1.0
METER_AGE_SECONDS = (0.1, 1.0)
MIXED_WATTS = (8 * (700 - 200), 8 * (1400 - 500), 8 * (700 - 200), 400)
"""Above the floors: eight GPUs of 200 to 700 W, of 500 to 1400 W, and processors alone."""
STATIC_WATTS = 6500
"""A machine that obeys no limit, at the most that it can draw."""
GANG_NODES = 4
FEED_RATIO, PART_RATIO = 0.9, 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One thing that can be played."""

    name: str
    summary: str
    tell: Callable[[Run], Played]

    def play(self, run: Run) -> Outcome:
        """Play it."""
        site, figures = self.tell(run)
        checkers = site.checkers.values()
        return Outcome(
            scenario=self.name,
            nodes=run.nodes,
            seed=run.seed,
            loss_ratio=run.loss_ratio,
            violations=tuple(one for checker in checkers for one in checker.violations),
            violations_total=sum(checker.violations_total for checker in checkers),
            virtual_seconds=site.world.now,
            figures={**figures, "events_checked_total": site.checker.events_total},
        )


def tell_chaos(run: Run, *, is_heavy: bool = False) -> Played:
    """The storm, and what is left of it after the calm."""
    site = run.make(
        run.nodes,
        run.seed,
        loss_ratio=run.loss_ratio,
        step_crash_ratio=STEP_CRASH_RATIO,
        empty_slots=1,
    )
    storm = Storm(site, is_heavy=is_heavy)
    storm.play()
    budget = site.desk.charter.version.watts
    not_owned, not_in_force = unserved_watts(site)
    stranded = storm.stranded_ratios
    largest = max(one.watts for one in site.desk.charter.budgets)
    counted = {f"{name.replace(' ', '_')}_total": count for name, count in site.counts.items()}
    return site, {
        **counted,
        "transfers_total": sum(one.credited_total for one in site.nodes.values()),
        "writes_checked_total": site.checker.writes_total,
        "one_epoch_total": int(site.epoch() is not None),
        "quarantined_total": sum(one.is_quarantined for one in site.nodes.values()),
        "largest_caps_ratio": round(site.checker.max_bound_watts / largest, 5),
        "excess_watts": round(site.checker.worst_excess_watts, 1),
        "stranded_mean_ratio": round(sum(stranded) / max(1, len(stranded)), 4),
        "unserved_ratio": round(not_owned / budget, 4),
        "not_in_force_ratio": round(not_in_force / budget, 4),
    }


def tell_overlap(run: Run) -> Played:
    """The same with three deaths, whose retirements overlap."""
    return tell_chaos(run, is_heavy=True)


def tell_mixed(run: Run) -> Played:
    """The storm over machines of four kinds, and one that obeys no limit."""
    make = partial(run.make, maximum_watts=MIXED_WATTS, static_watts=STATIC_WATTS)
    return tell_chaos(replace(run, make=make))


def tell_two_operators(run: Run) -> Played:
    """Two operators sign a budget each, on two sides of a partition; later one settles it."""
    site = run.calm_site()
    _want_all(site)
    site.run_for(30.0)
    operators = TwoOperators(site, partial(_until, site))
    operators.play()
    return site, {
        "to_the_lower_budget_seconds": operators.to_the_lower_seconds,
        "settled_seconds": operators.settled_seconds,
        "not_alarmed_total": run.nodes - operators.alarmed_count,
    }


def tell_two_feeds(run: Run) -> Played:
    """Two feeds with a budget each: one loses a part, then all, and the other carries the rack."""
    site = run.make(run.nodes, run.seed, loss_ratio=run.loss_ratio, feed_ratio=FEED_RATIO)
    site.run_for(WARM_SECONDS)
    _want_all(site)
    site.run_for(WARM_SECONDS)
    low = int(PART_RATIO * site.dynamic_watts)
    site.set_budget(low, FEED)
    to_the_part = _until(site, lambda: site.checker.bound_watts <= low)
    site.shift()
    site.run_for(WARM_SECONDS)
    # Whichever is lost now, the other one carries everything that may be drawn.
    least = min(site.desk.charter_of(one).version.watts for one in site.checkers)
    carried = site.checker.bound_watts / least
    site.set_budget(site.dynamic_watts, FEED)
    _want_all(site)
    restored = _until(site, lambda: site.checker.bound_watts >= 0.95 * site.dynamic_watts)
    return site, {
        "to_the_lower_feed_seconds": to_the_part,
        "carried_by_one_feed_ratio": round(carried, 4),
        "restored_seconds": restored,
    }


def tell_gang(run: Run) -> Played:
    """Nodes of synchronous jobs, four each: none gets more than its slowest sibling can use."""
    site = run.calm_site()
    gangs = form_gangs(site, GANG_NODES)
    site.run_for(WARM_SECONDS)
    spread, wasted = spread_of(gangs)
    return site, {
        "spread_in_a_gang_ratio": round(spread, 4),
        "wasted_ratio": round(wasted / site.dynamic_watts, 4),
    }


def tell_shift(run: Run) -> Played:
    """Half the rack goes idle and the other half wants everything, at one instant."""
    site = run.calm_site()
    site.run_for(WARM_SECONDS)
    transfers = sum(one.credited_total for one in site.nodes.values())
    site.shift()
    ideal = ideal_of_rack(site)
    at_first = missing_watts(site, ideal)
    began = site.world.now
    after_90: float | None = None
    after_98: float | None = None
    missing_joules = 0.0
    while site.world.now < began + WATCH_SECONDS and after_98 is None:
        site.run_for(STEP_SECONDS)
        missing = missing_watts(site, ideal)
        missing_joules += missing * STEP_SECONDS
        passed = round(site.world.now - began, 3)
        if after_90 is None and missing <= 0.10 * at_first:
            after_90 = passed
        if missing <= 0.02 * at_first + DEADBAND_WATTS:
            after_98 = passed
    given = sum(one.credited_total for one in site.nodes.values()) - transfers
    datagrams = site.counts["datagrams"] / run.nodes / site.world.now
    return site, {
        "to_90_percent_seconds": after_90,
        "to_98_percent_seconds": after_98,
        "missing_joules_of_ideal_ratio": round(
            missing_joules / max(1.0, at_first * IDEAL_CENTRAL_SECONDS), 3
        ),
        "transfers_of_the_shift": given,
        "datagrams_per_node_and_second": round(datagrams, 2),
    }


def tell_cut(run: Run, *, dead: int = 0) -> Played:
    """The budget is lowered by 30 %, below all that is in force."""
    site = run.calm_site()
    _want_all(site)
    site.run_for(30.0)
    for node in list(site.nodes.values())[:dead]:
        site.kill(node)
    site.set_budget(site.dynamic_watts * 0.7)
    low = site.desk.charter.version.watts
    return site, {
        "to_the_new_budget_seconds": _until(site, lambda: site.checker.bound_watts <= low)
    }


def tell_cut_two_dead(run: Run) -> Played:
    """The same just after two nodes died with their caps: the others make up for them."""
    return tell_cut(run, dead=2)


def tell_retire(run: Run, *, is_one_absent: bool = False) -> Played:
    """A hot node dies, is powered off and replaced, and its shares are given out again."""
    site = run.calm_site()
    for node in site.nodes.values():
        node.machine.demand_watts = int(site.chance.uniform(0.3, 1.0) * MAXIMUM_WATTS)
        node.push_wants()
    site.run_for(30.0)
    victim, other = site.chance.sample(list(site.nodes.values()), 2)
    site.kill(victim)
    account = site.checker.accounts[victim.node_id]
    stranded = account.own_shares + sum(shares for _, shares in account.outbox.values())
    site.run_until(38.0)
    site.replace(victim)
    if is_one_absent:
        site.world.after(1.9, site.crash, other, 30.0)
    site.run_until(40.001)

    def is_over() -> bool:
        epoch = site.epoch()
        return epoch is not None and epoch.number == 2

    seconds = _until(site, is_over, within=90.0)
    site.run_for(10.0)
    return site, {
        "all_in_the_new_epoch_seconds": seconds,
        "stranded_ratio": round(stranded / 10**9, 4),
    }


def tell_retire_absent(run: Run) -> Played:
    """The same while one who has to sign is down for 30 s."""
    return tell_retire(run, is_one_absent=True)


def tell_partition(run: Run) -> Played:
    """Half is cut from half, then demand shifts; each half moves what it holds; then they meet."""
    site = run.calm_site()
    site.run_for(30.0)
    nodes = list(site.nodes.values())
    site.chance.shuffle(nodes)
    halves = nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]
    side = {one.node_id for one in halves[0]}
    site.cut(lambda sender, to: (sender in side) != (to in side))
    site.run_for(12.0)
    site.shift()

    def missing() -> int:
        return sum(missing_watts(site, _ideal(half)) for half in halves)

    def _ideal(half: list[PowerNode]) -> dict[NodeId, int]:
        return ideal_among(site, half)

    at_first = missing()
    each_side = _until(site, lambda: missing() <= 0.1 * at_first)
    site.cut(None)
    ideal = ideal_of_rack(site)
    healed = _until(site, lambda: missing_watts(site, ideal) <= 0.1 * at_first)
    return site, {"each_half_to_90_percent_seconds": each_side, "healed_to_90_seconds": healed}


def tell_emergency(run: Run) -> Played:
    """Loads that no cap holds draw 8 % too much; two nodes read the rack's meter each second."""
    site = run.calm_site()
    _want_all(site)
    site.run_for(30.0)
    floors = FLOOR_WATTS * run.nodes
    budget = site.desk.charter.version.watts + floors
    for machine in site.chance.sample(site.machines, min(4, run.nodes)):
        machine.uncapped_watts = int(0.08 * budget / min(4, run.nodes))

    def poll(node: PowerNode) -> None:
        watts, age = draw_watts(site) + floors, site.chance.uniform(*METER_AGE_SECONDS)
        site.world.after(age, node.read_meter, watts, age)
        site.world.after(METER_SECONDS, poll, node)

    for node in list(site.nodes.values())[:2]:
        site.world.after(site.chance.uniform(0, METER_SECONDS), poll, node)
    is_low = _until(site, lambda: draw_watts(site) + floors <= budget, within=30.0, step=0.02)
    return site, {"below_the_budget_seconds": is_low}


def tell_set_back(run: Run) -> Played:
    """Disks are set back one after the other, and a member lies to everybody about all it can."""
    site = run.calm_site()
    setbacks = SetBacks(site)
    setbacks.play()
    held = [node for node in site.living if is_held(node)]
    return site, {
        "set_back_total": len(setbacks.set_back),
        "forgotten_entries_total": setbacks.forgotten_total,
        "noticed_total": setbacks.noticed_total,
        "held_by_a_lie_total": sum(node.node_id not in setbacks.set_back for node in held),
        "one_epoch_total": int(site.epoch() is not None),
        "largest_caps_ratio": round(site.checker.max_bound_watts / site.dynamic_watts, 5),
        "excess_watts": round(site.checker.worst_excess_watts, 1),
    }


def tell_contrasts(run: Run) -> Played:
    """Two minutes of shifting demand, by our rule and by three others on the same machines."""
    trace = draw_trace(run.nodes, run.seed)
    site = run.calm_site()
    meter = Meter(trace, site.world, site.machines)
    nodes = list(site.nodes.values())
    for node in nodes:
        node.weight = 4

    def change(demands: Sequence[int], is_shift: bool) -> None:
        changed = [
            one for one, now in zip(nodes, demands, strict=True) if one.machine.demand_watts != now
        ]
        for machine, demand in zip(site.machines, demands, strict=True):
            machine.demand_watts = demand
        meter.demands_changed(demands, is_shift=is_shift)
        for node in changed:
            node.push_wants()

    change(trace.steps[0][1], False)
    for at, demands in trace.steps[1:]:
        site.world.at(at, change, demands, at in trace.shifts)
    site.run_until(TRACE_SECONDS)
    results = {"ours": meter.result()}
    results |= {name: play(trace, run.seed) for name, play in CONTRASTS.items()}
    figures: dict[str, Figure] = {}
    for name, served in results.items():
        times = [one for one in served.to_90_percent_seconds if one is not None]
        figures[f"{name}_goodput_ratio"] = served.goodput_ratio
        figures[f"{name}_to_90_percent_seconds"] = median(times) if times else None
        figures[f"{name}_never_total"] = len(served.to_90_percent_seconds) - len(times)
        figures[f"{name}_could_draw_too_much_seconds"] = served.over_seconds
        figures[f"{name}_drew_too_much_seconds"] = served.drew_over_seconds
        figures[f"{name}_worst_over_watts"] = served.worst_over_watts
    central = results["central"].goodput_ratio
    figures["ours_of_central_ratio"] = round(results["ours"].goodput_ratio / central, 4)
    return site, figures


def _want_all(site: Site) -> None:
    for node in site.nodes.values():
        node.machine.demand_watts = MAXIMUM_WATTS
        node.push_wants()


def _until(
    site: Site,
    is_so: Callable[[], bool],
    *,
    within: float = WATCH_SECONDS,
    step: float = STEP_SECONDS,
) -> float | None:
    """Let time pass until something is so; how long it took, None for never."""
    began = site.world.now
    while site.world.now < began + within:
        site.run_for(step)
        if is_so():
            return round(site.world.now - began, 3)
    return None


def _scenario(name: str, tell: Callable[[Run], Played]) -> Scenario:
    summary = (tell.__doc__ or "").strip().rstrip(".")
    return Scenario(name=name, summary=summary, tell=tell)


SCENARIOS: Mapping[str, Scenario] = {
    name: _scenario(name, tell)
    for name, tell in (
        ("chaos", tell_chaos),
        ("overlap", tell_overlap),
        ("shift", tell_shift),
        ("cut", tell_cut),
        ("cut-two-dead", tell_cut_two_dead),
        ("retire", tell_retire),
        ("retire-absent", tell_retire_absent),
        ("partition", tell_partition),
        ("emergency", tell_emergency),
        ("set-back", tell_set_back),
        ("mixed", tell_mixed),
        ("two-operators", tell_two_operators),
        ("two-feeds", tell_two_feeds),
        ("gang", tell_gang),
        ("contrasts", tell_contrasts),
    )
}
