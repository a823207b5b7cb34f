"""The command line: help, guides, exit codes, options anywhere, completion."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from esnode import __version__
from esnode.cli import COMMANDS, SUMMARIES, cli
from esnode.cli.metrics import PROFILES
from esnode.metrics import PROFILES as SERVED_PROFILES
from esnode.snapshot import Snapshot
from esnode.status import describe
from tests.metrics_servers import Answer, send, serve
from tests.snapshots import rich_snapshot

UNREACHABLE = "http://127.0.0.1:9"
"""The discard port: nobody listens there."""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file and no variable of the machine that runs the tests is read."""
    empty = tmp_path / "empty.toml"
    empty.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ESNODE_CONFIG", str(empty))
    for name in ("ESNODE_AGENT", "NVIDIA_VISIBLE_DEVICES", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, list(words), env=environment, prog_name="esnode")


def every_command() -> Iterator[tuple[str, ...]]:
    def walk(command: click.Command, path: tuple[str, ...], ctx: click.Context) -> Iterator[tuple]:
        yield path
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                inner = command.get_command(ctx, name)
                assert inner is not None
                yield from walk(
                    inner, (*path, name), click.Context(inner, info_name=name, parent=ctx)
                )

    yield from walk(cli, (), click.Context(cli, info_name="esnode"))


def test_without_a_command_a_guide_of_one_screen_is_shown() -> None:
    result = run()

    assert result.exit_code == 0
    assert "esnode agent" in result.output
    assert len(result.output.splitlines()) < 24


def test_the_version_is_told() -> None:
    result = run("--version")

    assert (result.exit_code, result.output) == (0, f"esnode, version {__version__}\n")


@pytest.mark.parametrize("path", list(every_command()), ids=lambda path: " ".join(path) or "esnode")
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")

    assert result.exit_code == 0
    _, _, body = result.output.partition("\n")
    name = " ".join(path)
    assert re.search(rf"^\s.*esnode .*{re.escape(path[-1] if path else 'agent')}", body, re.M), name
    assert all(len(line) <= 100 for line in result.output.splitlines())


def test_every_command_is_listed_with_one_line() -> None:
    result = run("--help")

    assert set(SUMMARIES) == set(COMMANDS)
    for name in COMMANDS:
        assert (f"\n  {name} " in result.output) == (name != "daemon")


def test_the_old_name_of_the_agent_command_still_works() -> None:
    assert "Run the agent" in run("daemon", "--help").output


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        pytest.param("statsu", "no command 'statsu'; did you mean status?", id="typo"),
        pytest.param("xyzzy", "no command 'xyzzy'; `esnode --help` lists the commands", id="none"),
    ],
)
def test_an_unknown_command_names_the_nearest(word: str, hint: str) -> None:
    result = run(word)

    assert result.exit_code == 2
    assert hint in result.output


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--scrape-interval", "1s", "config", "show", "--json"), id="before"),
        pytest.param(("config", "--scrape-interval", "1s", "show", "--json"), id="between"),
        pytest.param(("config", "show", "--json", "--scrape-interval", "1s"), id="after"),
        pytest.param(("config", "show", "--json", "--scrape-interval=1s"), id="with-equals"),
    ],
)
def test_options_may_stand_before_and_after_the_command(words: tuple[str, ...]) -> None:
    result = run(*words)

    assert result.exit_code == 0, result.output
    values = {entry["key"]: entry for entry in json.loads(result.output)["values"]}
    assert values["scrape_interval"] == {
        "key": "scrape_interval",
        "value": "1s",
        "source": "flag",
        "where": "--scrape-interval",
        "has_effect": True,
    }


def test_an_option_of_the_command_itself_stays_the_commands() -> None:
    result = run("demo", "--hardware", "k80x8")

    assert result.exit_code == 2
    assert "'k80x8' has no known part 'k80'" in result.output


def test_what_follows_two_dashes_is_no_option() -> None:
    result = run("config", "set", "--", "--scrape-interval")

    assert result.exit_code == 2
    assert "'--scrape-interval' is not KEY=VALUE" in result.output


def test_an_option_without_its_value_is_wrong_usage() -> None:
    result = run("status", "--agent")

    assert result.exit_code == 2
    assert "Option '--agent' requires an argument" in result.output


def test_every_mistake_in_the_configuration_is_a_line_of_its_own() -> None:
    result = run("agent", "--scrape-interval", "1", "--enable-cpu", "perhaps")

    assert result.exit_code == 2
    assert sorted(result.output.splitlines()) == [
        "esnode: --enable-cpu: 'perhaps' is not a boolean; write true or false",
        "esnode: --scrape-interval: '1' has no unit; write e.g. 5s, 250ms, 2m, 1h",
    ]


def test_a_machine_that_cannot_be_simulated_is_refused_before_the_agent_starts() -> None:
    result = run("agent", "--hardware", "simulated:h100x0")

    assert result.exit_code == 2
    assert result.output.startswith("esnode: hardware: 'h100x0' has no GPU or more than 64")


@pytest.mark.parametrize("command", ["status", "metrics"])
def test_an_agent_that_does_not_answer_is_exit_code_3_and_one_line(command: str) -> None:
    result = run(command, "--agent", UNREACHABLE)

    assert result.exit_code == 3
    assert result.output.startswith(f"esnode: no agent answers at {UNREACHABLE} (")
    assert "start one with `esnode agent`" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("command", ["status", "metrics"])
def test_a_url_that_is_none_is_one_line(command: str) -> None:
    result = run(command, "--agent", "gopher://x")

    assert result.exit_code == 3
    assert "'gopher://x' is not the URL of an agent" in result.output


def test_a_password_in_the_url_is_not_repeated() -> None:
    result = run("status", "--agent", "http://ada:secret@127.0.0.1:1")

    assert "no agent answers at http://********@127.0.0.1:1 (" in result.output
    assert "secret" not in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    result = run("completion", shell)

    assert result.exit_code == 0
    assert "_ESNODE_COMPLETE" in result.output


def test_completion_of_an_unknown_shell_is_wrong_usage() -> None:
    assert run("completion", "tcsh").exit_code == 2


def test_the_profiles_are_those_that_the_agent_knows() -> None:
    result = run("profiles")

    assert set(PROFILES) == set(SERVED_PROFILES)
    assert [line.split()[0] for line in result.output.splitlines()] == list(PROFILES)


def answer_with(status: bytes, *, code: int = 200) -> Answer:
    def answer(handler, _) -> None:  # type: ignore[no-untyped-def]
        if handler.path == "/status":
            send(handler, status, status=code)
        elif handler.path == "/metrics?profile=basic":
            send(handler, b"esnode_cpu_load1 1.5\n")
        else:
            send(handler, b"no such route\n", status=404)

    return answer


def status_bytes(snapshot: Snapshot) -> bytes:
    document = describe(
        snapshot, hostname="node-07", unix_seconds=1_800_000_000.0, uptime_seconds=90061.0
    )
    return json.dumps(document).encode()


HEALTHY = Snapshot(taken_at_seconds=1.0, sequence=1)


@pytest.mark.parametrize(
    ("snapshot", "code", "word"),
    [
        pytest.param(HEALTHY, 0, "node-07  healthy", id="healthy"),
        pytest.param(rich_snapshot(), 1, "node-07  NOT HEALTHY", id="failing"),
    ],
)
def test_the_exit_code_says_whether_the_node_is_well(
    snapshot: Snapshot, code: int, word: str
) -> None:
    with serve(answer_with(status_bytes(snapshot))) as url:
        result = run("status", "--agent", url)

    assert result.exit_code == code
    assert result.output.startswith(word)
    assert "up 1 d 1 h" in result.output


def test_a_folder_that_is_named_and_has_no_agent_is_not_answered_by_another(
    tmp_path: Path,
) -> None:
    result = run("status", "--state-dir", str(tmp_path))

    assert result.exit_code == 3
    assert f"no agent runs in {tmp_path}; start one with" in result.output


def test_the_screen_shows_gpus_troubles_and_what_is_missing() -> None:
    with serve(answer_with(status_bytes(rich_snapshot()))) as url:
        output = run("status", "--agent", url).output

    assert "5,200 W (dcmi)  envelope 5,000 W EXCEEDED" in output
    assert "! GPU 7 is down: GPU is lost" in output
    assert output.count("GPU is lost") == 1
    assert "! gpu:8: Unknown Error" in output
    assert "! disk_busy nvme0n1: busy 90% of the time" in output
    assert "! filesystem /mnt/nfs stalled: no answer within 2 s" in output
    assert "  ipmi: no ipmitool" in output
    assert "\x1b[" not in output


def test_unknown_figures_are_dashes_and_never_zero() -> None:
    with serve(answer_with(status_bytes(HEALTHY))) as url:
        output = run("status", "--agent", url).output

    rows = {line.split()[0]: line for line in output.splitlines() if line}
    assert rows["CPU"] == "CPU      - of - cores, load - - -"
    assert rows["Power"] == "Power    -"


def test_the_status_as_json_is_the_agents_document() -> None:
    with serve(answer_with(status_bytes(HEALTHY))) as url:
        result = run("status", "--json", "--agent", url)

    assert json.loads(result.output)["schema"] == "esnode.status/1"


@pytest.mark.parametrize(
    ("body", "code", "expected"),
    [
        pytest.param(
            b"<html>", 200, "is not an esnode agent; name one with --agent URL", id="not-json"
        ),
        pytest.param(b'{"schema": "other/1"}', 200, "is not an esnode agent", id="another-program"),
        pytest.param(b"[1]", 200, "is not an esnode agent", id="another-shape"),
        pytest.param(
            b"the agent is stopping\nmore", 503, "answered 503: the agent is stopping", id="refusal"
        ),
    ],
)
def test_another_program_at_that_address_is_one_line(body: bytes, code: int, expected: str) -> None:
    with serve(answer_with(body, code=code)) as url:
        result = run("status", "--agent", url)

    assert result.exit_code == 3
    assert expected in result.output
    assert len(result.output.splitlines()) == 1


def test_metrics_prints_what_the_agent_serves_of_one_profile() -> None:
    with serve(answer_with(b"")) as url:
        result = run("metrics", "basic", "--agent", url.removeprefix("http://"))

    assert (result.exit_code, result.output) == (0, "esnode_cpu_load1 1.5\n")


def test_a_proxy_of_the_environment_is_not_asked_for_an_agent() -> None:
    with serve(answer_with(status_bytes(HEALTHY))) as url:
        result = run("status", "--agent", url, HTTP_PROXY=UNREACHABLE, http_proxy=UNREACHABLE)

    assert result.exit_code == 0


def test_the_agent_is_found_by_variable_and_by_listen_address() -> None:
    with serve(answer_with(status_bytes(HEALTHY))) as url:
        by_variable = run("status", ESNODE_AGENT=url)
        by_address = run("status", "--listen-address", url.removeprefix("http://"))

    assert (by_variable.exit_code, by_address.exit_code) == (0, 0)
