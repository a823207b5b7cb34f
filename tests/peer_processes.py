"""Programs of others that tests run beside an agent: Prometheus and node_exporter, on loopback."""

import json
import shutil
import socket
import subprocess
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents import ask, wait_until

NODE_EXPORTER_NAMES = ("prometheus-node-exporter", "node_exporter")


def find_program(*names: str) -> str:
    """The first of these programs that is installed; the test is skipped when none is."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"{names[0]} is not installed")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str], log_path: Path, *, port: int, ready: str) -> Iterator[int]:
    """A server that answers on its port; gives its process id. It is killed at the end."""
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:

        def answers() -> bool:
            assert process.poll() is None, log_path.read_text()[-2000:]
            return ask(port, ready).status == 200

        wait_until(answers, seconds=20, why=f"{command[0]} answers, see {log_path}")
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def node_exporter(folder: Path, *flags: str) -> Iterator[tuple[int, int]]:
    """(port, process id) of a node_exporter with its default collectors."""
    program = find_program(*NODE_EXPORTER_NAMES)
    port = free_port()
    command = [program, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error", *flags]
    with running(command, folder / "node_exporter.log", port=port, ready="/metrics") as pid:
        yield port, pid


SCRAPE_CONFIGURATION = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: esnode
    static_configs:
      - targets: ["127.0.0.1:{agent_port}"]
"""


class Prometheus:
    """A running Prometheus and its query interface."""

    def __init__(self, port: int) -> None:
        self.port = port

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """An instant query: value by labels."""
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        document = json.loads(ask(self.port, path).body)
        assert document["status"] == "success", document
        result = document["data"]["result"]
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in result}

    def one(self, expression: str) -> float | None:
        """The value of a query that gives at most one series."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return next(iter(found.values()), None)

    def target(self) -> dict[str, object]:
        """What it says of the one target that it scrapes."""
        (target,) = json.loads(ask(self.port, "/api/v1/targets").body)["data"]["activeTargets"]
        assert isinstance(target, dict)
        return target


@contextmanager
def prometheus(folder: Path, *, agent_port: int) -> Iterator[Prometheus]:
    """A Prometheus that scrapes one agent every second into a folder of its own."""
    program = find_program("prometheus")
    port = free_port()
    file = folder / "prometheus.yml"
    file.write_text(SCRAPE_CONFIGURATION.format(agent_port=agent_port))
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with running(command, folder / "prometheus.log", port=port, ready="/-/ready"):
        yield Prometheus(port)
