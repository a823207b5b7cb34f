"""How jobs of a real agent are ended: drained, saved, asked, killed, in this order."""

import json
import signal
import time

import pytest

from tests.agents import running_agent, wait_until
from tests.job_agents import end_all, is_alive, jobs, main_pid, order, state, submit, wait_for
from tests.peer_processes import free_port

pytestmark = pytest.mark.process

HARDWARE = "--hardware=simulated:h100x2"

SERVER = """
import http.server, os, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        count = pathlib.Path(sys.argv[2]).read_text()
        running = f'vllm:num_requests_running{{model_name="m"}} {count}\\n'
        body = (running + 'vllm:num_requests_waiting{model_name="m"} 0\\n').encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

SAVER = """
trap 'sleep 0.5; echo $n > saved; touch checkpoint_ready' USR1
trap 'exit 0' TERM
n=$(cat saved 2>/dev/null || echo 0)
echo from $n
while true; do n=$((n+1)); sleep 0.1; done
"""


@pytest.fixture
def place(tmp_path):
    yield tmp_path
    end_all(tmp_path / "agent-state")


def test_a_model_server_is_stopped_only_once_nothing_is_under_way(place):
    port = free_port()
    (place / "server.py").write_text(SERVER)
    (place / "running").write_text("3")
    spec = (
        f"name: engine\ncommand: [python3, {place}/server.py, '{port}', {place}/running]\n"
        f"adapter: engine\nengine: {{kind: vllm, url: 'http://127.0.0.1:{port}'}}\n"
    )
    with running_agent(place, HARDWARE) as agent:
        (place / "engine.yaml").write_text(spec)
        job = json.loads(order(agent, "submit", "--json", str(place / "engine.yaml")))["id"]
        wait_for(agent, job, "running")
        assert agent.get(f"/v1/jobs/{job}/ready").status == 200

        order(agent, "stop", job)
        wait_for(agent, job, "draining")
        assert agent.get(f"/v1/jobs/{job}/ready").status == 503
        time.sleep(3)
        assert state(agent, job) == "draining"
        (place / "running").write_text("0")

        wait_for(agent, job, "stopped", seconds=15)


def test_a_job_that_saves_is_stopped_after_its_save_and_goes_on_from_there(place):
    more = "checkpoint: {class: app}"
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, SAVER, more)
        wait_for(agent, job, "running")
        first = main_pid(agent, job)
        time.sleep(1)

        order(agent, "stop", "--requeue", job)
        wait_until(
            lambda: jobs(agent)[job]["attempt"] == 2 and state(agent, job) == "running",
            seconds=15,
            why="its second run",
        )
        saved = int((agent.state_dir / "jobs" / job / "work" / "saved").read_text())
        wait_until(
            lambda: f"from {saved}" in order(agent, "logs", job), seconds=5, why="its own word"
        )

    assert saved > 3
    assert not is_alive(first)


def test_a_job_that_does_not_save_in_time_is_stopped_all_the_same_and_it_is_said(place):
    more = "checkpoint: {class: app, timeout: 1s}"
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "trap '' USR1; sleep 600", more)
        wait_for(agent, job, "running")

        order(agent, "stop", job)

        wait_for(agent, job, "stopped", seconds=10)


def test_a_cancel_does_not_wait_for_a_drain_or_a_save(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "trap '' USR1; sleep 600", "checkpoint: {class: app, timeout: 600s}")
        wait_for(agent, job, "running")
        order(agent, "stop", job)
        wait_for(agent, job, "saving")

        order(agent, "cancel", job)

        wait_for(agent, job, "stopped", seconds=10)


def test_a_stop_that_an_agent_did_not_live_to_finish_is_finished_by_the_next(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "trap '' TERM; sleep 600; sleep 600", "stop: {grace: 3s}")
        wait_for(agent, job, "running")
        pid = main_pid(agent, job)
        order(agent, "stop", job)
        agent.end(signal.SIGKILL)

    with running_agent(place, HARDWARE) as agent:
        wait_for(agent, job, "stopped", seconds=15)

    assert not is_alive(pid)


def test_a_job_that_may_run_again_makes_room_for_a_more_important_one_and_comes_back(place):
    low = "devices: {gpu: 2}\npriority: 2\npreemptible: true\nidempotent: true\n"
    with running_agent(place, HARDWARE, "--control-preemption=enforce") as agent:
        victim = submit(agent, "sleep 600", low)
        wait_for(agent, victim, "running")

        high = submit(agent, "sleep 4", "devices: {gpu: 1}\npriority: 8\n")
        wait_for(agent, high, "running")
        assert state(agent, victim) == "queued"
        assert "makes room for work" in str(jobs(agent)[victim]["reason"])

        wait_for(agent, high, "succeeded")
        wait_for(agent, victim, "running")
        assert jobs(agent)[victim]["requeues"] == 1


def test_nobody_makes_room_while_that_is_only_observed(place):
    low = "devices: {gpu: 2}\npriority: 2\npreemptible: true\nidempotent: true\n"
    with running_agent(place, HARDWARE) as agent:
        victim = submit(agent, "sleep 600", low)
        wait_for(agent, victim, "running")

        high = submit(agent, "sleep 4", "devices: {gpu: 1}\npriority: 8\n")
        wait_until(
            lambda: "would have work" in order(agent, "explain", high), seconds=10, why="its reason"
        )

        assert state(agent, victim) == "running"
