"""The modes of what the agent may do by itself, and the predecessor's way to say them."""

from pathlib import Path

import pytest

from esnode.config.load import ConfigError, LoadedConfig, load


def loaded(tmp_path: Path, text: str, **flags: str) -> LoadedConfig:
    file = tmp_path / "esnode.toml"
    file.write_text(text)
    return load(flags=flags, environment={}, file=file)


def test_by_default_everything_only_observes(tmp_path: Path) -> None:
    config = loaded(tmp_path, "").config

    assert (config.control_thermal, config.control_preemption) == ("observe", "observe")


@pytest.mark.parametrize(
    ("key", "older"),
    [
        pytest.param("control_thermal", "enable_thermal_management", id="thermal"),
        pytest.param("control_preemption", "enable_flash_preemption", id="preemption"),
    ],
)
def test_what_the_predecessor_enabled_is_enforced(tmp_path: Path, key: str, older: str) -> None:
    alone = loaded(tmp_path, f"[orchestrator]\n{older} = true")
    both = loaded(tmp_path, f'{key} = "enforce"\n[orchestrator]\n{older} = true')
    neither = loaded(tmp_path, f'{key} = "off"\n[orchestrator]\n{older} = false')

    assert getattr(alone.config, key) == "enforce"
    assert alone.origins[key].source == "file"
    assert alone.dormant_keys_in_use() == ()
    assert getattr(both.config, key) == "enforce"
    assert getattr(neither.config, key) == "off"


def test_a_contradiction_is_one_line(tmp_path: Path) -> None:
    text = 'control_thermal = "observe"\n[orchestrator]\nenable_thermal_management = true'

    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)

    assert list(caught.value.problems) == [
        "control_thermal: is observe, and orchestrator.enable_thermal_management = true means "
        "enforce; take one of them out"
    ]
