"""Where a value comes from, and the spellings of the predecessor."""

import os
from pathlib import Path

import pytest

from esnode.config import KEYS, Config, ConfigError, find_file, load, state_directory
from esnode.config.load import simulated_hardware_file
from esnode.config.values import Address
from tests.config_files import load_all, problems_of, write


def test_without_any_source_every_value_is_the_default(tmp_path: Path) -> None:
    loaded = load_all(tmp_path)

    assert loaded.config == Config()
    assert {origin.source for origin in loaded.origins.values()} == {"default"}
    assert loaded.config.listen_address == Address("0.0.0.0", 9100)
    assert loaded.config.scrape_interval == 5.0


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        pytest.param(("file",), ("file", 2.0), id="the-file-beats-the-default"),
        pytest.param(("file", "environment"), ("environment", 3.0), id="the-environment-beats-it"),
        pytest.param(("file", "environment", "flag"), ("flag", 4.0), id="a-flag-beats-all"),
        pytest.param(("file", "flag"), ("flag", 4.0), id="a-flag-beats-the-file"),
    ],
)
def test_flags_beat_the_environment_which_beats_the_file(
    tmp_path: Path, sources: tuple[str, ...], expected: tuple[str, float]
) -> None:
    loaded = load_all(
        tmp_path,
        file='scrape_interval = "2s"' if "file" in sources else None,
        environment={"ESNODE_SCRAPE_INTERVAL": "3s"} if "environment" in sources else {},
        flags={"scrape_interval": "4s"} if "flag" in sources else {},
    )

    origin = loaded.origins["scrape_interval"]
    assert (origin.source, loaded.config.scrape_interval) == expected
    wheres = {
        "file": str(tmp_path / "esnode.toml"),
        "environment": "ESNODE_SCRAPE_INTERVAL",
        "flag": "--scrape-interval",
    }
    assert origin.where == wheres[origin.source]


def test_an_empty_variable_is_as_good_as_none(tmp_path: Path) -> None:
    loaded = load_all(tmp_path, environment={"ESNODE_SCRAPE_INTERVAL": " "})

    assert loaded.origins["scrape_interval"].source == "default"


@pytest.mark.parametrize(
    ("file", "environment", "flags", "attribute", "expected"),
    [
        pytest.param("scrape_interval_seconds = 5", {}, {}, "scrape_interval", 5.0, id="seconds"),
        pytest.param("scrape_interval_seconds = 0.5", {}, {}, "scrape_interval", 0.5, id="half"),
        pytest.param(
            'scrape_interval_seconds = "2m"', {}, {}, "scrape_interval", 120.0, id="with-a-unit"
        ),
        pytest.param(
            None,
            {"ESNODE_SCRAPE_INTERVAL_SECONDS": "7"},
            {},
            "scrape_interval",
            7.0,
            id="seconds-in-the-environment",
        ),
        pytest.param(
            None, {}, {"scrape_interval_seconds": "8"}, "scrape_interval", 8.0, id="as-a-flag"
        ),
        pytest.param(
            None,
            {"NVIDIA_VISIBLE_DEVICES": "0,1"},
            {},
            "gpu_visible_devices",
            "0,1",
            id="nvidias-own-variable",
        ),
        pytest.param(
            None,
            {"NVIDIA_VISIBLE_DEVICES": "0,1", "ESNODE_GPU_VISIBLE_DEVICES": "2"},
            {},
            "gpu_visible_devices",
            "2",
            id="our-variable-beats-nvidias",
        ),
        pytest.param(
            '[orchestrator]\ntoken = "s"',
            {},
            {},
            "orchestrator_token",
            "s",
            id="table-orchestrator",
        ),
        pytest.param(
            "orchestrator.enabled = true", {}, {}, "orchestrator_enabled", True, id="dotted-key"
        ),
        pytest.param(
            None,
            {"ESNODE_ENABLE_ORCHESTRATOR": "yes"},
            {},
            "orchestrator_enabled",
            True,
            id="its-old-variable",
        ),
        pytest.param(
            'enforcement_mode = "Monitor"', {}, {}, "enforcement_mode", "monitor", id="Monitor"
        ),
        pytest.param('log_level = "Info"', {}, {}, "log_level", "info", id="Info"),
        pytest.param(
            '[tags]\nrow = "7"\nenv = "dev"',
            {},
            {},
            "tags",
            (("env", "dev"), ("row", "7")),
            id="tags-table",
        ),
        pytest.param(
            None,
            {"ESNODE_TAGS": "a=1,b=x=y"},
            {},
            "tags",
            (("a", "1"), ("b", "x=y")),
            id="tags-text",
        ),
        pytest.param(
            'app_metrics_url = "http://localhost:8000/metrics"',
            {},
            {},
            "app_metrics_url",
            ("http://localhost:8000/metrics",),
            id="one-url-as-text",
        ),
        pytest.param(
            'metric_aliases = ["ESNODE-core", "dcgm"]',
            {},
            {},
            "metric_aliases",
            ("esnode-core", "dcgm"),
            id="list-in-any-case",
        ),
        pytest.param(
            'listen_address = "[::1]:0"', {}, {}, "listen_address", Address("::1", 0), id="ipv6"
        ),
        pytest.param(
            'listen_address = ":9200"',
            {},
            {},
            "listen_address",
            Address("0.0.0.0", 9200),
            id="port-alone",
        ),
        pytest.param(None, {}, {"enable_cpu": "OFF"}, "enable_cpu", False, id="off"),
        pytest.param(
            '[[drivers]]\nprotocol = "modbus"',
            {},
            {},
            "drivers",
            ({"protocol": "modbus"},),
            id="facility-drivers",
        ),
    ],
)
def test_the_predecessors_spellings_are_read(
    tmp_path: Path,
    file: str | None,
    environment: dict[str, str],
    flags: dict[str, str],
    attribute: str,
    expected: object,
) -> None:
    loaded = load_all(tmp_path, file=file, environment=environment, flags=flags)

    assert getattr(loaded.config, attribute) == expected


def test_keys_that_nothing_reads_yet_are_named_when_they_are_set(tmp_path: Path) -> None:
    loaded = load_all(tmp_path, file="enable_ebpf = true\nenable_cpu = false")

    assert loaded.dormant_keys_in_use() == ("enable_ebpf",)


def test_the_named_file_is_read_before_the_variable_and_the_working_directory(
    tmp_path: Path,
) -> None:
    here, named, other = tmp_path / "here", tmp_path / "named.toml", tmp_path / "other.toml"
    here.mkdir()
    write(here, "")
    named.touch()
    other.touch()
    environment = {"ESNODE_CONFIG": str(other)}

    assert find_file(str(named), environment, here) == named
    assert find_file(None, environment, here) == other
    assert find_file(None, {}, here) == here / "esnode.toml"


@pytest.mark.parametrize(
    ("flag", "environment", "how"),
    [
        pytest.param("nowhere.toml", {}, "--config", id="flag"),
        pytest.param(None, {"ESNODE_CONFIG": "nowhere.toml"}, "ESNODE_CONFIG", id="variable"),
    ],
)
def test_a_named_file_that_is_missing_is_an_error(
    tmp_path: Path, flag: str | None, environment: dict[str, str], how: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        find_file(flag, environment, tmp_path)

    assert caught.value.problems == (f"{how}: no file nowhere.toml; create it or name another",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_a_folder_that_may_not_be_entered_holds_no_file(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)

    assert find_file(None, {}, locked) is None


def test_state_lies_where_the_configuration_the_user_or_the_system_says(tmp_path: Path) -> None:
    named = Config(state_dir=str(tmp_path))

    assert state_directory(named, {}) == tmp_path
    assert simulated_hardware_file(named, {}) == tmp_path / "simulated-hardware.json"
    assert simulated_hardware_file(Config(simulated_hardware_path="/x/machine.json"), {}) == Path(
        "/x/machine.json"
    )
    expected = "/var/lib/esnode" if os.geteuid() == 0 else "/home/somebody/.local/state/esnode"
    assert state_directory(Config(), {"HOME": "/home/somebody"}) == Path(expected)


def test_no_two_keys_share_a_flag_a_variable_or_a_spelling() -> None:
    flags = [f for key in KEYS.values() for f in (key.flag, *key.flag_aliases)]
    variables = [v for key in KEYS.values() for v in (key.environment, *key.environment_aliases)]
    names = [n for key in KEYS.values() for n in (key.name, *dict(key.file_aliases))]

    for given in (flags, variables, names):
        assert len(given) == len(set(given))


@pytest.mark.parametrize("key", [pytest.param(key, id=key.name) for key in KEYS.values()])
def test_every_key_explains_itself(key) -> None:  # type: ignore[no-untyped-def]
    assert key.help.endswith(".")
    assert key.metavar


@pytest.mark.parametrize("name", ["state_dir", "tls_key_path", "simulated_hardware_path"])
def test_a_text_that_no_file_can_be_called_is_refused(tmp_path: Path, name: str) -> None:
    assert problems_of(tmp_path, file=f'{name} = "a\\u0000b"') == [
        f"esnode.toml:1: {name}: 'a\\x00b' holds a NUL character, which no name may"
    ]


def test_digits_of_another_script_are_no_duration() -> None:
    with pytest.raises(ConfigError, match="is not a duration"):
        load(flags={"scrape_interval": "\u0665s"}, environment={}, file=None)
