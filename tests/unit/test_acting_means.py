"""The rules with their edges: real files, a real signal, clocks set by hand."""

import os
import resource
import signal
from pathlib import Path

import pytest
import trio

from esnode.acting.leases import Lease, LeaseKind
from esnode.acting.rules import EVERYTHING
from esnode.acting.words import Do, Mode, Result, Skip, Verdict, Would
from esnode.acting_means import Acting
from esnode.audit import verify
from tests.acting_bench import Bench
from tests.acting_cases import proposal, ticket_of

WITHIN_SECONDS = 1.0
"""What a kill switch is given."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def why(verdict: Verdict) -> str:
    assert isinstance(verdict, Skip), verdict
    return verdict.reason


async def until_paused(acting: Acting, feature: str) -> None:
    with trio.fail_after(WITHIN_SECONDS):
        while acting.rules.pause_of(feature) is None:  # noqa: ASYNC110  # nobody is told of it
            await trio.sleep(0.02)


async def test_before_it_has_begun_nothing_is_done(bench: Bench) -> None:
    assert why(await bench.make().judge(proposal())) == "settling"


async def test_a_deed_has_a_line_before_it_and_one_after(bench: Bench) -> None:
    async with bench.life() as acting:
        ticket = ticket_of(await acting.judge(proposal()))
        before = bench.entries("before")
        bench.pass_by(2.5)
        await acting.done(ticket, Result.DONE, read_back="500 W", effect="4 C", has_effect=True)

    assert [one.text("id") for one in before] == [ticket.id]
    (after,) = bench.entries("after")
    assert after.fields["latency_seconds"] == 2.5
    assert after.text("read_back") == "500 W"
    assert verify(bench.control).broken == ""


async def test_what_would_be_done_is_in_the_audit_too(bench: Bench) -> None:
    async with bench.life(Mode.OBSERVE) as acting:
        verdict = await acting.judge(proposal())

    assert isinstance(verdict, Would)
    assert [one.text("line") for one in bench.entries("would")] == ["would drain: gpu GPU-a"]


async def test_without_room_for_its_line_a_deed_is_not_done(bench: Bench) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with bench.life() as acting:
        await acting.judge(proposal(target="gpu GPU-b"))
        size = next(bench.control.glob("audit-*")).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
        try:
            refused = await acting.judge(proposal())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        again = await acting.judge(proposal())

    assert why(refused) == "no-audit"
    assert isinstance(again, Do)


async def test_a_file_that_a_person_touches_stops_everything_at_once(bench: Bench) -> None:
    async with bench.life() as acting:
        (bench.control / "PAUSED").touch()
        verdict = await acting.judge(proposal())

    assert why(verdict) == "paused"


async def test_the_file_is_seen_within_a_second_without_anybody_asking(bench: Bench) -> None:
    async with bench.life() as acting:
        (bench.control / "PAUSED.cooling").write_text("fans are being changed\n")
        await until_paused(acting, "cooling")
        pause = acting.rules.pause_of("cooling")
        other = acting.rules.pause_of("reaping")

    assert pause is not None
    assert pause.reason == "fans are being changed"
    assert other is None


async def test_a_signal_stops_everything_within_a_second_and_over_restarts(bench: Bench) -> None:
    async with bench.life() as acting:
        os.kill(os.getpid(), signal.SIGUSR2)
        await until_paused(acting, "reaping")
    async with bench.life() as acting:
        after = await acting.judge(proposal())
        await acting.resume(EVERYTHING, by="alice")
        resumed = await acting.judge(proposal())

    assert why(after) == "paused"
    assert isinstance(resumed, Do)


async def test_a_pause_by_command_says_who_and_why_and_is_in_the_audit(bench: Bench) -> None:
    async with bench.life() as acting:
        trouble = await acting.pause("cooling", reason="maintenance", by="alice")
        verdict = await acting.judge(proposal())

    assert trouble == ""
    assert isinstance(verdict, Skip)
    assert verdict.line == "paused by alice: maintenance"
    assert "paused: cooling" in [one.text("line") for one in bench.entries("note")]


async def test_a_pause_whose_file_cannot_be_made_holds_all_the_same(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    async with bench.life() as acting:
        (bench.control / "PAUSED").mkdir()  # no file can be opened there
        await acting.look()
        paused = acting.rules.pause_of("cooling")

    assert paused is not None


async def test_a_spent_budget_is_an_alarm_and_outlives_a_restart(bench: Bench) -> None:
    async with bench.life() as acting:
        for number in range(4):
            await acting.judge(proposal("reaping", target=f"pid {number}"))
        bench.pass_by(11.0)
        words = [
            await acting.judge(proposal("reaping", target=f"pid {number}")) for number in range(4)
        ]
    async with bench.life() as acting:
        mode = acting.rules.mode("reaping")

    assert why(words[3]) == "budget"
    assert len(bench.alarms) == 1
    assert mode is Mode.OBSERVE


async def test_what_a_killed_agent_was_doing_is_told_as_unknown(bench: Bench) -> None:
    async with bench.life() as acting:
        ticket = ticket_of(await acting.judge(proposal()))
    async with bench.life():
        pass

    (note,) = [one for one in bench.entries("note") if one.text("id") == ticket.id]
    assert note.text("result") == "unknown"


async def test_a_memory_that_cannot_be_read_pauses_until_somebody_looked(bench: Bench) -> None:
    bench.control.mkdir()
    (bench.control / "memory.json").write_text('{"schema": ')

    async with bench.life() as acting:
        paused = await acting.judge(proposal())
        await acting.resume(EVERYTHING, by="alice")
        after = await acting.judge(proposal())

    assert why(paused) == "paused"
    assert len(bench.alarms) == 1
    assert isinstance(after, Do)
    assert (bench.control / "memory.json.unreadable").exists()


@pytest.mark.parametrize("clock", ["wall", "sleep"])
async def test_a_step_of_the_clock_and_a_sleep_stop_it_for_a_minute(
    bench: Bench, clock: str
) -> None:
    async with bench.life() as acting:
        bench.unix += 30.0 if clock == "wall" else 0.0
        bench.now += 0.0 if clock == "wall" else 30.0
        await trio.sleep(0.6)
        verdict = await acting.judge(proposal())

    assert why(verdict) == "settling"


async def test_a_lease_is_put_back_when_it_ends_and_tried_again_where_that_fails(
    bench: Bench,
) -> None:
    lease = Lease(
        id="act-1",
        feature="cooling",
        kind=LeaseKind.PLACEMENT,
        target="gpu GPU-a",
        original="open",
        changed="closed",
        until_seconds=bench.now + 150.0,
    )
    async with bench.life() as acting:
        assert await acting.lend(lease)
    bench.can_restore = False
    async with bench.life() as acting:
        held = acting.leases.all
        await trio.sleep(0.6)
        tried = list(bench.restored)
        bench.can_restore = True
        bench.pass_by(1.0)
        left = await acting.undo("act-1", by="alice")

    assert [one.id for one in held] == ["act-1"]
    assert tried == ["gpu GPU-a open"]
    assert left == ()
    assert "put back" in bench.entries("note")[-1].text("line")
