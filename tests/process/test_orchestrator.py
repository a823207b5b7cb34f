"""The predecessor's control routes, over TCP with a token, at a real agent."""

import http.client
import json
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.agents import needs_root, running_agent, wait_until
from tests.job_agents import end_all, jobs

pytestmark = pytest.mark.process

USER = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
TOKEN = "correct-horse-battery-staple"
DEVICE = {
    "id": "npu-7",
    "kind": "Npu",
    "peak_flops_tflops": 200.0,
    "mem_gb": 64.0,
    "power_watts_idle": 20.0,
    "power_watts_max": 90.0,
    "current_load": 0.1,
    "temperature_celsius": 40.0,
    "assigned_tasks": [],
}
TASK = {"id": "t-1", "est_flops": 1e15, "est_bytes": 1e9, "latency_class": "High"}


def ask(agent, method, path, body=None, *, token=TOKEN, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        named["Authorization"] = f"Bearer {token}"
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
    try:
        connection.request(method, path, data, named)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture
def place():
    """A folder that other users may pass through, as they may through the agent's own."""
    folder = Path(tempfile.mkdtemp(prefix="esnode-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def agent(place):
    with running_agent(
        place,
        "--hardware=simulated:h100x2",
        "--enable-orchestrator=true",
        f"--orchestrator-token={TOKEN}",
        f"--orchestrator-user={USER}",
    ) as running:
        yield running
    end_all(place / "agent-state")


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        pytest.param({"token": None}, 401, "bad-token", id="no token"),
        pytest.param({"token": TOKEN[:-1]}, 401, "bad-token", id="half a token"),
        pytest.param({"token": ""}, 401, "bad-token", id="empty token"),
        pytest.param({"Host": "evil.example:9100"}, 403, "foreign-host", id="rebound name"),
        pytest.param({"Origin": "http://127.0.0.1"}, 403, "foreign-origin", id="web page"),
    ],
)
def test_whoever_may_not_is_refused_in_one_line(agent, more, code, word):
    for method, path in (
        ("POST", "/orchestrator/register"),
        ("POST", "/orchestrator/submit"),
        ("GET", "/orchestrator/metrics"),
    ):
        status, document = ask(agent, method, path, TASK if method == "POST" else None, **more)

        assert (status, document["code"]) == (code, word)
        assert TOKEN not in json.dumps(document)


def test_devices_are_registered_and_tasks_placed_with_the_predecessors_shapes(agent):
    assert ask(agent, "POST", "/orchestrator/register", DEVICE) == (
        200,
        {"status": "ok", "message": "Device 'npu-7' registered/updated."},
    )
    status, placed = ask(
        agent, "POST", "/orchestrator/submit", {**TASK, "preferred_kinds": ["Npu"]}
    )
    assert (status, placed) == (200, {"status": "Assigned", "assigned_device": "npu-7"})
    status, waits = ask(
        agent, "POST", "/orchestrator/submit", {**TASK, "id": "t-2", "preferred_kinds": ["cpu"]}
    )
    assert (status, waits) == (200, {"status": "Queued", "assigned_device": None})

    status, document = ask(agent, "GET", "/orchestrator/metrics")

    assert status == 200
    assert document["device_count"] == 3
    assert document["pending_tasks"] == ["t-2"]
    (npu,) = [one for one in document["devices"] if one["id"] == "npu-7"]
    assert npu["assigned_tasks"] == ["t-1"]
    assert sorted(npu) == sorted(
        [*DEVICE, "real_power_watts"],
    )


@needs_root
def test_a_task_that_names_a_command_really_runs_once(agent, place):
    script = f"id -un > {place}/ran; sleep 600"
    (place / "ran").touch()
    (place / "ran").chmod(0o666)
    body = {**TASK, "command": ["bash", "-c", script]}

    first = ask(agent, "POST", "/orchestrator/submit", body)
    again = ask(agent, "POST", "/orchestrator/submit", body)

    assert first[0] == 200
    assert first[1]["status"] == "Assigned"
    assert first[1]["assigned_device"].startswith("GPU-")
    assert again == first
    assert list(jobs(agent)) == [first[1]["job"]]
    wait_until(lambda: (place / "ran").read_text(), seconds=10, why="the command")
    assert (place / "ran").read_text() == "nobody\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(b"{", id="half"),
        pytest.param({"id": "x"}, id="no numbers"),
        pytest.param({**TASK, "est_flops": "many"}, id="text for a number"),
        pytest.param({**TASK, "est_flops": True}, id="truth for a number"),
        pytest.param(b'{"id": "x", "est_flops": 1e999}', id="infinite"),
        pytest.param({**TASK, "latency_class": "soon"}, id="latency"),
        pytest.param({**TASK, "command": "rm -rf /"}, id="command as one text"),
        pytest.param({**TASK, "id": "x" * 1000}, id="long id"),
    ],
)
def test_a_body_that_is_no_task_is_one_line(agent, body):
    status, document = ask(agent, "POST", "/orchestrator/submit", body)

    assert status == 400
    assert "\n" not in document["error"]


def test_without_a_token_there_are_no_such_routes_over_tcp(tmp_path):
    with running_agent(
        tmp_path, "--hardware=simulated:h100x1", "--enable-orchestrator=true"
    ) as one:
        assert ask(one, "GET", "/orchestrator/metrics")[0] == 404
