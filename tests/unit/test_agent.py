"""What one tick makes of a reading, and that each change is told once."""

from dataclasses import replace

from esnode.agent import Agent, AgentSettings, Change
from esnode.diagnose import Thresholds
from esnode.readings.host import DiskReading, MemoryReading
from esnode.readings.power import DcmiPowerReading, IpmiReading
from esnode.readings.sample import Reading
from tests.samples import bare_gpu, cpu_at, gpus_at, sample, source
from tests.snapshots import DISK, MEMORY, NETWORK, NUMA, gpu_uuid, mounted

SETTINGS = AgentSettings()


def changes(agent: Agent, reading: Reading, now: float) -> list[tuple[str, str, str]]:
    tick = agent.tick(reading, now=now)
    return [(change.subject, change.before, change.after) for change in tick.changes]


def test_each_tick_has_its_number_and_its_time() -> None:
    agent = Agent(SETTINGS)

    ticks = [agent.tick(Reading(), now=now) for now in (10.0, 11.0)]

    assert [(t.snapshot.sequence, t.snapshot.taken_at_seconds) for t in ticks] == [
        (1, 10.0),
        (2, 11.0),
    ]


def test_what_was_read_is_shown_and_what_was_not_is_absent() -> None:
    reading = Reading(
        sources=(source("memory"),),
        disabled=("app",),
        memory=sample(MEMORY, 0.0),
        numa=sample(NUMA, 0.0),
        filesystems={"/b": sample(mounted("/b"), 0.0), "/a": sample(mounted("/a"), 0.0)},
    )

    snapshot = Agent(replace(SETTINGS, tags=(("row", "7"),))).tick(reading, now=1.0).snapshot

    assert snapshot.memory == MEMORY
    assert snapshot.numa == NUMA
    assert [fs.mount.mountpoint for fs in snapshot.filesystems] == ["/a", "/b"]
    assert (snapshot.cpu, snapshot.disk, snapshot.gpu_inventory) == (None, None, None)
    assert (snapshot.disabled, snapshot.tags) == (("app",), (("row", "7"),))


def test_a_part_that_is_too_old_vanishes_and_its_fresh_neighbours_stay() -> None:
    reading = Reading(
        memory=sample(MEMORY, 0.0),
        disk=sample(DISK, 10.0),
        network=sample(NETWORK, 0.0),
        filesystems={"/": sample(mounted("/"), 0.0)},
    )
    agent = Agent(SETTINGS)

    fresh = agent.tick(reading, now=17.0).snapshot
    stale = agent.tick(reading, now=17.1).snapshot

    assert fresh.memory == MEMORY
    assert (stale.memory, stale.network, stale.filesystems) == (None, None, ())
    assert stale.disk == DISK


def test_a_source_that_changes_is_told_once() -> None:
    agent = Agent(SETTINGS)
    ok = Reading(sources=(source("cpu"),))
    failed = Reading(sources=(source("cpu", "failed", "no /proc/stat"),))

    told = [changes(agent, reading, now=0.0) for reading in (ok, ok, failed, failed, ok)]

    assert told == [
        [("source cpu", "pending", "ok")],
        [],
        [("source cpu", "ok", "failed")],
        [],
        [("source cpu", "failed", "ok")],
    ]


def test_the_reason_comes_with_the_change() -> None:
    reading = Reading(sources=(source("cpu", "failed", "no /proc/stat"),))

    (change,) = Agent(SETTINGS).tick(reading, now=0.0).changes

    assert change == Change(
        subject="source cpu", before="pending", after="failed", detail="no /proc/stat"
    )


def test_a_source_that_has_not_answered_yet_is_no_news() -> None:
    assert changes(Agent(SETTINGS), Reading(sources=(source("cpu", "pending"),)), 0.0) == []


def test_a_target_that_goes_is_told_and_so_is_its_return() -> None:
    agent = Agent(SETTINGS)
    present = Reading(sources=(source("filesystem:/data"),))

    told = [changes(agent, reading, now=0.0) for reading in (present, Reading(), present)]

    assert told[1:] == [
        [("source filesystem:/data", "ok", "gone")],
        [("source filesystem:/data", "pending", "ok")],
    ]


def test_a_flag_is_told_when_it_is_raised_and_when_its_cause_ends() -> None:
    agent = Agent(SETTINGS)
    name = f"flag gpu_throttle {gpu_uuid(0)}"

    def reading(at: float, *reasons: str) -> Reading:
        return replace(gpus_at(at, {0: bare_gpu(0, throttle_reasons=reasons)}), sources=sources)

    sources = gpus_at(0.0, {0: bare_gpu(0)}).sources
    agent.tick(reading(0.0), now=0.0)

    told = [
        changes(agent, reading(now, *reasons), now)
        for now, reasons in (
            (5.0, ("sw_power_cap",)),
            (10.0, ("sw_power_cap", "hw_slowdown")),
            (15.0, ()),
        )
    ]

    assert told == [[(name, "clear", "raised")], [], [(name, "raised", "clear")]]


def test_a_flag_of_a_gpu_that_is_lost_is_cleared() -> None:
    agent = Agent(SETTINGS)
    agent.tick(gpus_at(0.0, {0: bare_gpu(0, throttle_reasons=("hw_slowdown",))}), now=0.0)

    tick = agent.tick(
        gpus_at(5.0, {}, states={0: source(f"gpu:{gpu_uuid(0)}", "failed", "lost")}), now=5.0
    )

    assert tick.snapshot.health.flags == ()
    assert [change.after for change in tick.changes] == ["failed", "clear"]


def test_an_exceeded_envelope_is_told_with_both_figures() -> None:
    agent = Agent(replace(SETTINGS, envelope_watts=500.0))

    def reading(watts: float) -> Reading:
        dcmi = DcmiPowerReading(
            power_watts=watts,
            minimum_watts=None,
            maximum_watts=None,
            average_watts=None,
            is_active=True,
        )
        return Reading(ipmi=sample(IpmiReading(dcmi=dcmi), 0.0))

    raised = agent.tick(reading(600.0), now=0.0).changes
    still = agent.tick(reading(700.0), now=1.0).changes
    cleared = agent.tick(reading(400.0), now=2.0).changes

    assert raised == (
        Change(
            subject="flag power_envelope",
            before="clear",
            after="raised",
            detail="600 W drawn, 500 W allowed",
        ),
    )
    assert still == ()
    assert [(c.subject, c.after) for c in cleared] == [("flag power_envelope", "clear")]


def test_new_settings_hold_from_the_next_tick_on() -> None:
    agent = Agent(SETTINGS)
    pages = [MemoryReading(swap_in_pages_total=n, swap_out_pages_total=0) for n in (0, 500, 1000)]
    agent.tick(Reading(memory=sample(pages[0], 0.0)), now=0.0)
    before = agent.tick(Reading(memory=sample(pages[1], 5.0)), now=5.0).snapshot.health

    agent.settings = replace(SETTINGS, thresholds=Thresholds(swap_pages_per_second=100.0))
    after = agent.tick(Reading(memory=sample(pages[2], 10.0)), now=10.0).snapshot.health

    assert (before.score, after.score) == (0, 1)


def test_the_load_the_draw_and_the_rates_reach_the_snapshot() -> None:
    agent = Agent(SETTINGS)
    later = DiskReading(
        devices=(replace(DISK.devices[0], io_time_seconds_total=5.625),),
    )
    agent.tick(Reading(cpu=cpu_at(0.0, 0.0, 0.0), disk=sample(DISK, 0.0)), now=0.0)

    snapshot = agent.tick(
        Reading(cpu=cpu_at(5.0, 1.0, 3.0), disk=sample(later, 5.0)), now=5.0
    ).snapshot

    assert snapshot.cpu_usage.utilization_ratio == 0.25
    assert snapshot.rates.disks[0].busy_ratio == 0.5
    assert snapshot.power.node is not None
    assert snapshot.power.node.is_estimated
