"""What is done to a fleet, and what is measured of it; each scenario is bounded in time.

A figure is a number under a name; `None` stands for what did not happen in time. Times are in
seconds from the moment of the deed.
"""

import random
import time
from collections.abc import Sequence

from cluster.gossip.statements import STATEMENT_OVERHEAD_BYTES
from tests.benchmarks.gossip.fleet import Event, Fleet, Kind, address_of
from tests.benchmarks.gossip.ours import OurFleet, ages_of
from tests.benchmarks.gossip.serf import SerfFleet
from tests.benchmarks.measuring import cpu_seconds, median, percentile

Figures = dict[str, float | None]
STATE_BYTES = 300
STATE_FRAME_BYTES = STATEMENT_OVERHEAD_BYTES + 4
"""Head and signature of a statement, and the array around its one byte string."""
JOIN_SECONDS = 120.0
SETTLE_SECONDS = 3.0
SILENT_SECONDS = 40.0
EPISODE_SECONDS = 2.0
"""Suspicions of one node that are closer together than this are one."""


def crash(fleet: Fleet, rng: random.Random) -> Figures:
    """One process is killed, its machine goes on and refuses; then it comes back."""
    victim = rng.randrange(1, fleet.count)
    figures = _deaths(fleet, [victim], fleet.kill([victim]), SILENT_SECONDS)
    figures["restart"] = fleet.restart(victim)
    time.sleep(SETTLE_SECONDS)
    return figures


def silent(fleet: Fleet, rng: random.Random) -> Figures:
    """One machine is gone without a word."""
    victim = rng.randrange(1, fleet.count)
    fleet.network.silence([address_of(victim)])
    figures = _deaths(fleet, [victim], fleet.kill([victim]), SILENT_SECONDS)
    fleet.network.silence([])
    figures["restart"] = fleet.restart(victim)
    time.sleep(SETTLE_SECONDS)
    return figures


def rack_refused(fleet: Fleet, rng: random.Random) -> Figures:
    """A fifth is killed at once; their machines refuse."""
    return _rack(fleet, rng, is_silent=False)


def rack_silent(fleet: Fleet, rng: random.Random) -> Figures:
    """A fifth loses its power at once."""
    return _rack(fleet, rng, is_silent=True)


def pause(fleet: Fleet, rng: random.Random, *, seconds: float = 5.0) -> Figures:
    """A tenth is stopped for a while, and goes on."""
    victims = rng.sample(range(1, fleet.count), max(1, fleet.count // 10))
    began = fleet.pause(victims, is_paused=True)
    time.sleep(seconds)
    resumed = fleet.pause(victims, is_paused=False)
    time.sleep(0.05)
    is_healed = fleet.wait(fleet.is_full, 90.0)
    time.sleep(10.0)
    is_healed = is_healed and fleet.wait(fleet.is_full, 90.0)
    failed = fleet.since(began, "failed")
    later = [one.at for one in fleet.since(resumed) if one.kind != "user"]
    return {
        "paused shown failed": len({one.subject for one in failed if one.subject in victims}),
        "healthy shown failed": len({one.subject for one in failed if one.subject not in victims}),
        "healthy suspected": len(
            {
                one.subject
                for one in fleet.since(began, "suspect")
                if one.subject not in victims and one.observer not in victims
            }
        ),
        "healed": max(later, default=resumed) - resumed if is_healed else None,
    }


def loss(fleet: Fleet, ratio: float, *, seconds: float) -> Figures:
    """Every packet may be lost; nobody dies."""
    fleet.network.lose(ratio)
    began = time.perf_counter()
    time.sleep(seconds)
    traffic = fleet.network.udp()
    failed, suspected = fleet.since(began, "failed"), fleet.since(began, "suspect")
    fleet.network.lose(0.0)
    is_healed = fleet.wait(fleet.is_full, 90.0)
    return {
        "false failures": len(failed),
        "members failed falsely": len({one.subject for one in failed}),
        "suspicions": _episodes(suspected),
        "datagrams per agent": traffic.packets / seconds / fleet.count,
        "healed": float(is_healed),
    }


def idle(fleet: Fleet, *, seconds: float) -> Figures:
    """Nothing changes."""
    fleet.publish(0)
    time.sleep(2 * SETTLE_SECONDS)
    return _cost(fleet, seconds)


def publishing_cost(fleet: Fleet, *, seconds: float) -> Figures:
    """Every node tells all others its state each second."""
    fleet.publish(STATE_BYTES)
    time.sleep(2 * SETTLE_SECONDS)
    figures = _cost(fleet, seconds)
    received = figures["bytes"]
    assert received is not None
    least = (fleet.count - 1) * (STATE_BYTES + STATE_FRAME_BYTES)
    figures["times the least"] = received / least
    fleet.publish(0)
    return figures


def staleness(fleet: Fleet, *, seconds: float) -> Figures:
    """How old is the newest state that each node holds of each other one?"""
    fleet.publish(STATE_BYTES)
    time.sleep(2 * SETTLE_SECONDS)
    if isinstance(fleet, OurFleet):
        fleet.reports()
        fleet.sample(0.5)
        time.sleep(seconds)
        fleet.sample(0.0)
        ages, missing_count = ages_of(fleet.reports())
    else:
        assert isinstance(fleet, SerfFleet)
        ages, missing_count = _serf_ages(fleet, seconds)
    fleet.publish(0)
    total = len(ages) + missing_count
    return {
        "p50": percentile(ages, 0.5) if ages else None,
        "p99": percentile(ages, 0.99) if ages else None,
        "worst": ages[-1] if ages else None,
        "never held": missing_count / total if total else None,
        "older than 2 s": sum(1 for age in ages if age > 2.0) / total if total else None,
    }


def _serf_ages(fleet: SerfFleet, seconds: float) -> tuple[list[float], int]:
    began = time.perf_counter()
    time.sleep(seconds)
    ended = time.perf_counter()
    heard: dict[tuple[int, int], list[Event]] = {}
    for one in fleet.since(0.0, "user"):
        if one.observer != one.subject:
            heard.setdefault((one.observer, one.subject), []).append(one)
    ages: list[float] = []
    missing_count = 0
    live = fleet.live
    for pair in ((a, b) for a in live for b in live if a != b):
        ages_of_pair = _sampled(heard.get(pair, []), fleet.published, began, ended)
        missing_count += sum(1 for age in ages_of_pair if age is None)
        ages.extend(age for age in ages_of_pair if age is not None)
    return sorted(ages), missing_count


def _sampled(
    events: Sequence[Event], published: dict[str, float], began: float, ended: float
) -> list[float | None]:
    found: list[float | None] = []
    newest: float | None = None
    place = 0
    at = began
    while at < ended:
        while place < len(events) and events[place].at <= at:
            made = published.get(events[place].detail)
            if made is not None:
                newest = made if newest is None else max(newest, made)
            place += 1
        found.append(None if newest is None else at - newest)
        at += 0.5
    return found


def _cost(fleet: Fleet, seconds: float) -> Figures:
    live = fleet.live
    pids = [fleet.pid(number) for number in live]
    before = fleet.network.udp()
    cpu_before = [cpu_seconds(pid) for pid in pids]
    began = time.perf_counter()
    time.sleep(seconds)
    span = time.perf_counter() - began
    cpu_after = [cpu_seconds(pid) for pid in pids]
    after = fleet.network.udp()
    per_agent = span * len(live)
    return {
        "datagrams": (after.packets - before.packets) / per_agent,
        "bytes": (after.bytes - before.bytes) / per_agent,
        "cpu percent": median(
            [(b - a) / span * 100 for a, b in zip(cpu_before, cpu_after, strict=True)]
        ),
    }


def _deaths(fleet: Fleet, victims: Sequence[int], at: float, seconds: float) -> Figures:
    """When the survivors knew."""
    survivors = fleet.live
    wanted = {(observer, subject) for observer in survivors for subject in victims}

    def known(kind: Kind) -> dict[tuple[int, int], float]:
        found: dict[tuple[int, int], float] = {}
        for one in fleet.since(at, kind):
            found.setdefault((one.observer, one.subject), one.at - at)
        return {pair: when for pair, when in found.items() if pair in wanted}

    is_complete = fleet.wait(lambda: known("failed").keys() >= wanted, seconds)
    failed, suspected = known("failed"), known("suspect")
    healthy = set(survivors)
    return {
        "first suspect": min(suspected.values(), default=None),
        "first failed": min(failed.values(), default=None),
        "all failed": max(failed.values()) if is_complete else None,
        "spread": max(failed.values()) - min(failed.values()) if is_complete else None,
        "healthy shown failed": len(
            {one.subject for one in fleet.since(at, "failed") if one.subject in healthy}
        ),
    }


def _episodes(events: Sequence[Event]) -> int:
    """How often somebody was suspected, however many nodes noticed it."""
    last: dict[int, float] = {}
    count = 0
    for one in sorted(events, key=lambda one: one.at):
        if one.at - last.get(one.subject, -EPISODE_SECONDS) >= EPISODE_SECONDS:
            count += 1
        last[one.subject] = one.at
    return count


def _rack(fleet: Fleet, rng: random.Random, *, is_silent: bool) -> Figures:
    victims = rng.sample(range(1, fleet.count), max(2, fleet.count // 5))
    if is_silent:
        fleet.network.silence([address_of(victim) for victim in victims])
    figures = _deaths(fleet, victims, fleet.kill(victims), 90.0)
    fleet.network.silence([])
    for victim in victims:
        fleet.spawn(victim)
    for victim in victims:
        fleet.hold(victim)
    fleet.go(victims)
    fleet.wait(fleet.is_full, 90.0)
    time.sleep(SETTLE_SECONDS)
    return figures
