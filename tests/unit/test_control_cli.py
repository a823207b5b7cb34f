"""`esnode control` and `why`: at an agent's socket, and from the files where no agent answers."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner, Result
from quart_trio import QuartTrio

from esnode.acting.rules import EVERYTHING
from esnode.acting.words import Mode
from esnode.acting_means import Acting
from esnode.api.orders import BadOrder
from esnode.api.rules import PATH, add_rules_orders, add_rules_view
from esnode.cli import cli
from esnode.cli.control import status_lines
from esnode.control_stats import count_control
from esnode.pauses import read_pauses
from tests.acting_bench import Bench
from tests.acting_cases import proposal


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.toml").touch()
    monkeypatch.setenv("ESNODE_CONFIG", str(tmp_path / "empty.toml"))


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--state-dir", str(folder), *words])


def app_of(acting: Acting) -> QuartTrio:
    app = QuartTrio("test")
    add_rules_view(app, acting)
    add_rules_orders(app, acting)
    return app


@asynccontextmanager
async def living(folder: Path, mode: Mode = Mode.ENFORCE) -> AsyncIterator[tuple[Bench, Acting]]:
    bench = Bench(folder)
    async with bench.life(mode) as acting:
        yield bench, acting


async def test_the_document_has_modes_budgets_and_what_was_decided(tmp_path: Path) -> None:
    async with living(tmp_path) as (_, acting):
        await acting.judge(proposal())
        document = await (await app_of(acting).test_client().get(PATH)).get_json()

    cooling = next(one for one in document["features"] if one["name"] == "cooling")
    (decision,) = document["decisions"]
    assert document["schema"] == "esnode.control/1"
    assert (cooling["mode"], cooling["budget_remaining"]) == ("enforce", 99)
    assert (decision["word"], decision["target"]) == ("do", "gpu GPU-a")
    assert decision["evidence"] == ["temperature 91 C (gpu, 1 s ago)"]


async def test_orders_pause_and_resume(tmp_path: Path) -> None:
    async with living(tmp_path) as (_, acting):
        client = app_of(acting).test_client()
        paused = await client.post(
            f"{PATH}/pause", data=json.dumps({"feature": "cooling", "reason": "fans"})
        )
        document = await paused.get_json()
        pause = acting.rules.pause_of("cooling")
        await client.post(f"{PATH}/resume", data="{}")
        after = acting.rules.pause_of("cooling")

    assert pause is not None
    assert pause.reason == "fans"
    assert after is None
    assert any("paused: by somebody" in line for line in status_lines(document))


@pytest.mark.parametrize(
    ("verb", "order"),
    [
        pytest.param("pause", {"feature": "nothing"}, id="no-such-feature"),
        pytest.param("undo", {"lease": "act-9"}, id="no-such-lease"),
    ],
)
async def test_an_order_about_nothing_is_refused(
    tmp_path: Path, verb: str, order: dict[str, str]
) -> None:
    async with living(tmp_path) as (_, acting):
        app = app_of(acting)
        app.register_error_handler(BadOrder, lambda error: (str(error), 400))
        answer = await app.test_client().post(f"{PATH}/{verb}", data=json.dumps(order))

    assert answer.status_code == 400
    assert "none" in (await answer.get_data()).decode()


async def test_the_figures_say_modes_actions_and_what_was_not_done(tmp_path: Path) -> None:
    async with living(tmp_path, Mode.OBSERVE) as (bench, acting):
        await acting.judge(proposal())
        await acting.judge(proposal("reaping"))
        stats = count_control(acting.rules, bench.now)

    assert (("cooling", "observe"), True) in stats.modes
    assert stats.actions_total == ((("cooling", "observe", "would"), 1),)
    assert stats.skipped_total == ((("reaping", "dwell"), 1),)


def test_with_the_agent_down_a_pause_is_made_and_ended_as_a_file(tmp_path: Path) -> None:
    paused = run(tmp_path, "control", "pause", "thermal", "--reason", "fans are changed")
    found = read_pauses(tmp_path / "control")
    resumed = run(tmp_path, "control", "resume")

    assert paused.exit_code == 0
    assert "its next agent obeys" in paused.stdout
    assert found["thermal"].reason == "fans are changed"
    assert resumed.exit_code == 0
    assert read_pauses(tmp_path / "control") == {}


def test_with_the_agent_down_a_pause_of_nothing_known_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "control", "pause", "thermals")

    assert result.exit_code == 2
    assert "there are thermal, preemption" in result.stderr


@pytest.mark.parametrize("words", [("status",), ("plan",), ("undo", "--all")])
def test_what_needs_the_agent_says_so(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = run(tmp_path, "control", *words)

    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1


def test_undo_needs_one_lease_or_all(tmp_path: Path) -> None:
    assert run(tmp_path, "control", "undo").exit_code == 2
    assert run(tmp_path, "control", "undo", "act-1", "--all").exit_code == 2


def test_why_answers_from_the_files_and_says_that_no_agent_does(tmp_path: Path) -> None:
    async def act() -> None:
        async with living(tmp_path) as (_, acting):
            await acting.judge(proposal())
            await acting.pause(EVERYTHING, reason="r", by="alice")

    trio.run(act)

    known = run(tmp_path, "why", "GPU-a")
    unknown = run(tmp_path, "why", "GPU-z9")

    assert known.exit_code == 0
    assert "cooling: drain: gpu GPU-a" in known.stdout
    assert "from the files alone" in known.stderr
    assert unknown.exit_code == 1
