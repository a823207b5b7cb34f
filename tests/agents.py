"""Real agents as processes on loopback, and the requests that tests make of them.

Used by the process and peers tiers and by the benchmarks. An agent gets a state folder of its own,
a free port, and an environment without anything that could configure it.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
START_SECONDS = 30.0
LoggedEvent = dict[str, object]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


def private_mounts(script: str) -> tuple[str, ...]:
    """Run what follows among mounts of its own, after a shell script has made them."""
    return ("unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh")


class NotInTime(AssertionError):
    """Something that should have come about did not."""


def wait_until(what: Callable[[], object], *, seconds: float, why: str) -> None:
    """Wait until a condition holds; it may raise OSError while it does not."""
    deadline = time.perf_counter() + seconds
    while True:
        try:
            if what():
                return
        except (OSError, http.client.HTTPException):
            pass
        if time.perf_counter() > deadline:
            raise NotInTime(f"not within {seconds:g} s: {why}")
        time.sleep(0.02)


def clean_environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing configures an agent but what a test gives."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "PYTHONPATH": str(REPOSITORY),
        **more,
    }


def esnode_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "esnode", *arguments]


def run_esnode(
    folder: Path,
    *arguments: str,
    timeout_seconds: float = 30.0,
    within: Sequence[str] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [*within, *esnode_command(*arguments)],
        cwd=folder,
        env=clean_environment(folder, **environment),
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> dict[str, object]:
        document = json.loads(self.body)
        assert isinstance(document, dict)
        return document


@dataclass(kw_only=True)
class AgentProcess:
    """One running agent."""

    process: subprocess.Popen[bytes]
    state_dir: Path
    log_path: Path
    address: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def events(self, name: str = "") -> list[LoggedEvent]:
        """What it has logged so far, of one name or all."""
        lines = self.log_path.read_text().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if not name or event["event"] == name]

    def get(
        self, path: str = "/metrics", *, timeout_seconds: float = 5.0, **headers: str
    ) -> Answer:
        """Ask for one page; underscores in header names stand for hyphens."""
        return ask(self.port, path, timeout_seconds=timeout_seconds, **headers)

    def samples(self, name: str) -> dict[str, float]:
        """The series of one metric by their labels, as text."""
        return samples(self.get("/metrics").text, name)

    def value(self, name: str) -> float | None:
        """The one series of a metric without labels."""
        return self.samples(name).get("")

    def status(self) -> dict[str, object]:
        return self.get("/status").json()

    def resident_mib(self) -> float:
        statm = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(statm[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def end(self, number: signal.Signals = signal.SIGTERM, *, seconds: float = 10.0) -> float:
        """Send a signal and wait for the end; gives how long that took."""
        started = time.perf_counter()
        self.process.send_signal(number)
        self.process.wait(seconds)
        return time.perf_counter() - started

    def wait_for_event(self, name: str, *, count: int = 1, seconds: float = 10.0) -> LoggedEvent:
        wait_until(
            lambda: len(self.events(name)) >= count, seconds=seconds, why=f"log event {name}"
        )
        return self.events(name)[count - 1]


def ask(
    port: int, path: str, *, timeout_seconds: float = 5.0, method: str = "GET", **headers: str
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_seconds)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        response = connection.getresponse()
        body = response.read()
        got = {name.lower(): value for name, value in response.getheaders()}
        return Answer(status=response.status, headers=got, body=body)
    finally:
        connection.close()


def samples(exposition: str, name: str) -> dict[str, float]:
    found = {}
    for line in exposition.splitlines():
        series, _, value = line.rpartition(" ")
        metric, brace, labels = series.partition("{")
        if metric == name:
            found[brace + labels] = float(value)
    return found


@contextmanager
def started_agent(
    folder: Path,
    *flags: str,
    state_dir: Path | None = None,
    listen: str = "127.0.0.1:0",
    name: str = "agent",
    within: Sequence[str] = (),
    **environment: str,
) -> Iterator[AgentProcess]:
    """An agent that was just started; it may not serve yet. It is killed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    state_dir = state_dir or folder / f"{name}-state"
    log_path = folder / f"{name}.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [
                *within,
                *esnode_command(
                    "agent",
                    f"--listen-address={listen}",
                    f"--state-dir={state_dir}",
                    "--log-format=json",
                    *flags,
                ),
            ],
            cwd=folder,
            env=clean_environment(folder, **environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield AgentProcess(process=process, state_dir=state_dir, log_path=log_path)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def running_agent(folder: Path, *flags: str, **more: object) -> Iterator[AgentProcess]:
    """An agent that serves, and has made its first tick."""
    with started_agent(folder, *flags, **more) as agent:  # type: ignore[arg-type]  # passed on
        agent.address = _address(agent)
        wait_until(lambda: agent.get("/healthz").status == 200, seconds=10, why="first tick")
        yield agent


def _address(agent: AgentProcess) -> str:
    """From its state folder, else (where that cannot be written) from its log."""
    announced = agent.state_dir / "agent.json"

    def is_up() -> bool:
        if agent.process.poll() is not None:
            raise NotInTime(f"the agent ended: {agent.log_path.read_text()[-2000:]}")
        return bool(agent.events("agent_started"))

    wait_until(is_up, seconds=START_SECONDS, why=f"the agent's start, see {agent.log_path}")
    try:
        document = json.loads(announced.read_text())
        if document["pid"] == agent.pid:
            return str(document["addresses"][0])
    except (OSError, ValueError):
        pass
    addresses = agent.events("agent_started")[0]["addresses"]
    assert isinstance(addresses, list)
    return str(addresses[0])
