"""`esnode power` and real agents: a rack from its proposal to a retirement."""

import signal
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agents import wait_until
from tests.power_racks import NAMES, PowerRack

pytestmark = pytest.mark.process


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[PowerRack]:
    with ExitStack() as stack:
        yield PowerRack(tmp_path, stack)


def currency(rack: PowerRack) -> dict[str, Any]:
    found: Any = rack.power(NAMES[0])["currencies"]
    return dict(found[0])


def is_failed(rack: PowerRack, name: str) -> bool:
    nodes: Any = rack.agents[NAMES[0]].get("/v1/cluster").json()["nodes"]
    return any(node["name"] == name and node["state"] == "failed" for node in nodes)


def test_an_operator_runs_a_rack_from_the_command_line(rack: PowerRack) -> None:
    rack.form()
    proposed = tomllib.loads(rack.run("power", "genesis", "--propose"))
    assert [slot["node"] for slot in proposed["slots"]] == list(NAMES)
    assert "no power budget" in rack.run("power", "status")

    rack.found()
    for name in NAMES:
        assert rack.run("power", "gate", "--timeout", "20s", on=name) == "open: enforcing\n"
    rack.run("power", "genesis", "--file", str(rack.folder / "rack.toml"), "--yes", code=1)

    cut = rack.budget_watts - 200
    rack.run("power", "budget", "set", "r01", str(cut), "--yes")
    rack.run("power", "budget", "set", "r01", "100", "--yes", code=1)
    rack.run("power", "budget", "set", "r07", str(cut), "--yes", code=2)
    assert currency(rack)["budget_watts"] == cut
    assert not any(slot["is_behind"] for slot in currency(rack)["slots"])
    assert "may draw" in rack.run("power", "explain", "gpu-02")

    off = ("power", "retire", "gpu-03", "--powered-off", "--yes")
    rack.run(*off, code=1)  # it is alive
    rack.agents.pop("gpu-03").end(signal.SIGKILL)
    wait_until(lambda: is_failed(rack, "gpu-03"), seconds=40, why="gpu-03 is given up")
    rack.run(*off)
    assert currency(rack)["epoch"] == [2, 0]
    assert "gpu-03" not in str(currency(rack)["closing"])
    log = rack.run("cluster", "log")
    assert f"the budget of rack:r01 is {cut:,} W" in log
    assert "retired from rack:r01 as off" in log
