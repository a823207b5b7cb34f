"""`esnode config` and the metric sets."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from esnode.cli import cli
from esnode.cli.config import SETS
from esnode.config import KEYS
from tests.config_files import write


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ESNODE_CONFIG", "NVIDIA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, list(words), env=environment, prog_name="esnode")


def shown(*words: str, **environment: str) -> dict[str, dict[str, object]]:
    result = run("config", "show", "--json", *words, **environment)
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["schema"] == "esnode.config/1"
    return {entry["key"]: entry for entry in document["values"]}


def test_each_value_is_shown_with_where_it_comes_from(tmp_path: Path) -> None:
    file = write(tmp_path, 'scrape_interval = "2s"\ntags = { row = "7" }\n')

    values = shown("--enable-cpu", "false", ESNODE_LISTEN_ADDRESS="[::1]:9200")

    picked = {
        name: (values[name]["value"], values[name]["source"], values[name]["where"])
        for name in ("scrape_interval", "tags", "enable_cpu", "listen_address", "ipmi_interval")
    }
    assert picked == {
        "scrape_interval": ("2s", "file", str(file)),
        "tags": ({"row": "7"}, "file", str(file)),
        "enable_cpu": (False, "flag", "--enable-cpu"),
        "listen_address": ("[::1]:9200", "environment", "ESNODE_LISTEN_ADDRESS"),
        "ipmi_interval": ("30s", "default", ""),
    }


def test_a_place_that_is_worked_out_is_shown_as_the_place(tmp_path: Path) -> None:
    words = ("--state-dir", str(tmp_path / "state"), "--hardware", "simulated:l40sx2")

    values, real = shown(*words), shown(*words[:2])

    assert values["simulated_hardware_path"]["value"] == str(
        tmp_path / "state" / "simulated-hardware.json"
    )
    assert real["simulated_hardware_path"]["value"] is None
    assert str(shown()["state_dir"]["value"]).endswith("esnode")


def test_keys_without_effect_are_shown_when_they_are_set_or_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "enable_ebpf = true\n")

    values, everything = shown(), shown("--all")

    assert values["enable_ebpf"]["has_effect"] is False
    assert "enable_mcp" not in values
    assert set(everything) == set(KEYS)
    table = run("config", "show").output
    line = next(line for line in table.splitlines() if line.startswith("enable_ebpf"))
    assert line.endswith("(no effect in this version)")


SECRETS = """\
app_metrics_url = ["http://me:hunter2@a/metrics", "http://b/metrics"]
managed_server = "https://me:hunter2@server/"
managed_join_token = "hunter2"
[orchestrator]
token = "hunter2"
[[drivers]]
protocol = "snmp"
params = { community = "hunter2" }
"""


@pytest.mark.parametrize("words", [(), ("--json",), ("--all",)], ids=["table", "json", "all"])
def test_secrets_are_masked(tmp_path: Path, words: tuple[str, ...]) -> None:
    write(tmp_path, SECRETS)

    result = run("config", "show", *words)

    assert result.exit_code == 0, result.output
    assert "hunter2" not in result.output
    assert "http://********@a/metrics" in result.output


def test_a_secret_that_is_not_set_is_shown_as_such() -> None:
    assert shown("--all")["orchestrator.token"]["value"] is None


def test_the_table_has_a_line_for_each_value() -> None:
    lines = run("config", "show").output.splitlines()

    assert lines[0].split() == ["KEY", "VALUE", "FROM"]
    assert any(line.split() == ["gpu_visible_devices", "-", "default"] for line in lines)
    assert any(line.split() == ["enable_cpu", "true", "default"] for line in lines)


def test_keys_are_set_in_the_file_of_the_working_directory(tmp_path: Path) -> None:
    file = write(tmp_path, "# mine\nenable_cpu = true\n")

    result = run("config", "set", "enable_cpu=false", "tags=env=prod,row=7")

    assert result.exit_code == 0, result.output
    assert result.output.endswith(
        "esnode.toml: enable_cpu, tags set; a running agent takes it at SIGHUP\n"
    )
    assert file.read_text().startswith("# mine\nenable_cpu = false\n")
    assert tomllib.loads(file.read_text())["tags"] == {"env": "prod", "row": "7"}


def test_keys_are_set_in_the_file_that_is_named_and_it_need_not_exist(tmp_path: Path) -> None:
    named = tmp_path / "named.toml"

    result = run("config", "set", "enable_cpu=false", "--config", str(named))

    assert result.exit_code == 0, result.output
    assert named.read_text() == "enable_cpu = false\n"


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        pytest.param(
            "scrape_interval",
            "'scrape_interval' is not KEY=VALUE, e.g. scrape_interval=1s",
            id="no-value",
        ),
        pytest.param(
            "scrape_intervall=1s",
            "unknown key 'scrape_intervall'; did you mean scrape_interval?",
            id="unknown-key",
        ),
        pytest.param(
            "scrape_interval=10ms",
            "scrape_interval: '10ms' is below the floor of 100ms",
            id="bad-value",
        ),
    ],
)
def test_what_cannot_be_set_is_one_line_and_exit_code_2(
    tmp_path: Path, assignment: str, expected: str
) -> None:
    file = write(tmp_path, "enable_cpu = true\n")

    result = run("config", "set", assignment)

    assert (result.exit_code, result.output) == (2, f"esnode: {expected}\n")
    assert file.read_text() == "enable_cpu = true\n"


@pytest.mark.parametrize(
    ("command", "value"),
    [("enable-metric-set", True), ("disable-metric-set", False)],
    ids=["on", "off"],
)
@pytest.mark.parametrize("name", list(SETS))
def test_a_set_of_collectors_is_switched_in_the_file(
    tmp_path: Path, command: str, value: bool, name: str
) -> None:
    write(tmp_path, "# mine\n")

    result = run(command, name)

    assert result.exit_code == 0, result.output
    text = (tmp_path / "esnode.toml").read_text()
    assert text.startswith("# mine\n")
    assert tomllib.loads(text) == dict.fromkeys(SETS[name], value)


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("enable-metric-set", "mcp"), "note: enable_mcp has no effect in this version\n"),
        (
            ("config", "set", "orchestrator.enable_turbo_mode=true"),
            "note: orchestrator.enable_turbo_mode has no effect in this version\n",
        ),
        (("config", "set", "scrape_interval=1s"), ""),
    ],
)
def test_a_key_that_nothing_reads_is_said_to_have_no_effect(
    words: tuple[str, ...], note: str
) -> None:
    assert run(*words).stderr == note


def test_the_sets_together_are_all_and_name_real_keys() -> None:
    singles = [key for name, keys in SETS.items() if name != "all" for key in keys]

    assert list(SETS["all"]) == singles
    assert set(singles) <= set(KEYS)


def test_an_unknown_set_is_wrong_usage() -> None:
    assert run("enable-metric-set", "gpus").exit_code == 2
