"""State folders, ports and restarts: one agent a folder, one line when it cannot be."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents import needs_root, private_mounts, run_esnode, running_agent

pytestmark = pytest.mark.process

LISTENER = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
input()
"""


def test_an_agent_killed_is_started_again_on_its_folder(tmp_path: Path) -> None:
    state = tmp_path / "state"
    flags = ("--hardware=simulated:h100x2",)
    with running_agent(tmp_path, *flags, state_dir=state, name="one") as one:
        first_energy = sum(one.samples("esnode_gpu_energy_joules_total").values())
        one.process.kill()
        one.process.wait()
        assert json.loads((state / "agent.json").read_text())["pid"] == one.pid

        stale = run_esnode(tmp_path, f"--state-dir={state}", "status")
        assert stale.returncode == 3
        assert len(stale.stderr.splitlines()) == 1

        with running_agent(tmp_path, *flags, state_dir=state, name="two") as two:
            assert json.loads((state / "agent.json").read_text())["pid"] == two.pid
            assert two.status()["healthy"] is True
            # The simulated machine, like a real one, did not notice.
            assert sum(two.samples("esnode_gpu_energy_joules_total").values()) > first_energy
            found = run_esnode(tmp_path, f"--state-dir={state}", "status", "--json")
            assert found.returncode == 0
            assert json.loads(found.stdout)["schema"] == "esnode.status/1"


def test_a_second_agent_on_the_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with running_agent(tmp_path) as agent:
        second = run_esnode(
            tmp_path, "agent", "--listen-address=127.0.0.1:0", f"--state-dir={agent.state_dir}"
        )

        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr == (
            f"esnode: another agent (pid {agent.pid}) uses {agent.state_dir}; stop it, or give "
            "this one a folder of its own with --state-dir\n"
        )
        assert agent.get("/healthz").status == 200
        assert json.loads((agent.state_dir / "agent.json").read_text())["pid"] == agent.pid


def test_a_port_in_use_names_who_holds_it(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", LISTENER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        port = int(holder.stdout.readline())
        name = Path(f"/proc/{holder.pid}/comm").read_text().strip()

        refused = run_esnode(
            tmp_path, "agent", f"--listen-address=127.0.0.1:{port}", f"--state-dir={tmp_path}/s"
        )

        assert refused.returncode == 1
        assert refused.stderr == (
            f"esnode: listen_address: port {port} is held by {name} (pid {holder.pid}); stop it, "
            f"or move this agent with --listen-address 127.0.0.1:{port + 1}\n"
        )
    finally:
        holder.communicate("\n", timeout=5)
    after = run_esnode(tmp_path, f"--agent=127.0.0.1:{port}", "status")
    assert after.returncode == 3


def test_the_port_is_free_again_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    listen = f"127.0.0.1:{port}"
    for name in ("one", "two"):
        with running_agent(tmp_path, listen=listen, name=name) as agent:
            assert agent.get("/healthz").status == 200
            agent.end()
            assert agent.process.returncode == 0


def test_it_serves_without_a_state_folder_that_can_be_written(tmp_path: Path) -> None:
    in_the_way = tmp_path / "a-file"
    in_the_way.write_text("")
    state = in_the_way / "state"
    with running_agent(tmp_path, state_dir=state) as agent:
        assert agent.get("/metrics").status == 200
        (warning,) = agent.events("state_dir_unusable")
        assert str(state) in str(warning["detail"])

        agent.end()
        assert agent.process.returncode == 0


@needs_root
def test_it_serves_where_the_folder_is_read_only(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with running_agent(
        tmp_path, state_dir=state, within=private_mounts(f"mount -t tmpfs -o ro none '{state}'")
    ) as agent:
        assert agent.get("/metrics").status == 200
        (warning,) = agent.events("state_dir_unusable")
        assert warning["detail"] == f"{state}: Read-only file system"
