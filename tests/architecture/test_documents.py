"""The documents say what the program does."""

import importlib.util
from types import ModuleType

import click
import pytest

from esnode.cli import cli
from esnode.config import KEYS
from esnode.metrics import served_metrics
from tests.architecture.source_files import ROOT


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["configuration.md", "metrics.md"])
def test_a_generated_page_is_what_its_tables_say(generator: ModuleType, name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")

    assert page == generator.PAGES[name](), "run `python docs/generate.py`"


def configuration() -> str:
    return (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_every_key_with_its_flag_and_its_variable_is_documented() -> None:
    page = configuration()

    for key in KEYS.values():
        assert f"### {key.name}\n" in page or f"| `{key.name}` |" in page
        assert key.flag in page
        assert key.environment in page
        for older in (*dict(key.file_aliases), *key.environment_aliases):
            assert f"`{older}`" in page


def test_every_option_of_the_program_and_of_the_agent_is_documented() -> None:
    page = configuration()
    agent = cli.get_command(click.Context(cli), "agent")  # type: ignore[attr-defined]  # a group

    for command in (cli, agent):
        for option in command.params:
            older = {name for key in KEYS.values() for name, _ in key.file_aliases}
            if isinstance(option, click.Option) and option.name not in older:
                assert option.opts[0] in page


def test_every_family_is_documented() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")

    for metric in served_metrics(("esnode-core", "dcgm"), is_kubernetes=True):
        assert f"`{metric.name}`" in page
