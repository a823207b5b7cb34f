"""Many nodes as processes, and what each says of the others; the same for ours and for serf's."""

import os
import selectors
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.agents import REPOSITORY
from tests.benchmarks.gossip.namespace import Network, die_with_parent

Kind = Literal["here", "suspect", "failed", "gone", "user"]
START_SECONDS = 60.0


def address_of(number: int) -> str:
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One node says something of another."""

    at: float
    observer: int
    kind: Kind
    subject: int
    detail: str = ""


class Fleet(ABC):
    """So many nodes; each has a number, which gives it an address and a name."""

    name: str
    port: int
    logs_to_output = False

    def __init__(self, count: int, folder: Path) -> None:
        self.count = count
        self.folder = folder
        self.network = Network(self.port)
        self.views: list[dict[int, Kind]] = [{} for _ in range(count)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._is_closed = False
        self._reader = threading.Thread(target=self._read_for_ever, daemon=True)
        self._reader.start()

    # What differs.

    @abstractmethod
    def command(self, number: int) -> list[str]:
        """How a node is started."""

    @abstractmethod
    def hear(self, number: int, line: bytes, at: float) -> Iterator[Event]:
        """What a line of a node's output says."""

    @abstractmethod
    def hold(self, number: int) -> None:
        """Wait until a started node is up and waits for `go`."""

    @abstractmethod
    def go(self, numbers: Iterable[int]) -> None:
        """Let these join, all at once."""

    @abstractmethod
    def publish(self, size_bytes: int) -> None:
        """Every node tells all others so many bytes each second; 0 ends that."""

    # What is the same.

    def start(self) -> None:
        """Every process is up and waits."""
        for number in range(self.count):
            self.spawn(number)
        for number in range(self.count):
            self.hold(number)

    def join(self, seconds: float) -> float | None:
        """How long until everybody sees everybody; None if not in time."""
        began = time.perf_counter()
        self.go(range(self.count))
        if not self.wait(self.is_full, seconds):
            return None
        return max(one.at for one in self.since(began, "here")) - began

    def restart(self, number: int, seconds: float = 90.0) -> float | None:
        """A node that was killed comes back; how long until everybody sees it."""
        self.spawn(number)
        self.hold(number)
        began = time.perf_counter()
        self.go([number])
        if not self.wait(self.is_full, seconds):
            return None
        seen = [one.at for one in self.since(began, "here") if one.subject == number]
        return max(seen, default=began) - began

    def spawn(self, number: int) -> None:
        self.views[number] = {}
        with (self.folder / f"{self.name}-{number}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(number),
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if self.logs_to_output else log,
                preexec_fn=die_with_parent,
            )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._processes[number] = process
        self._selector.register(process.stdout, selectors.EVENT_READ, [number, b""])

    @property
    def live(self) -> list[int]:
        return [number for number, one in self._processes.items() if one.poll() is None]

    def pid(self, number: int) -> int:
        return self._processes[number].pid

    def tell(self, number: int, line: str) -> None:
        pipe = self._processes[number].stdin
        assert pipe is not None
        with suppress(OSError):  # it has just died
            pipe.write(line.encode() + b"\n")
            pipe.flush()

    def kill(self, numbers: Sequence[int]) -> float:
        """End these at once; when that was."""
        for number in numbers:
            self._processes[number].kill()
        at = time.perf_counter()
        for number in numbers:
            self.forget(number)
        return at

    def forget(self, number: int) -> None:
        process = self._processes[number]
        process.wait()
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()

    def pause(self, numbers: Iterable[int], *, is_paused: bool) -> float:
        """Stop these processes, or let them go on; when that was."""
        for number in numbers:
            os.kill(self.pid(number), signal.SIGSTOP if is_paused else signal.SIGCONT)
        return time.perf_counter()

    def is_full(self) -> bool:
        """Whether every node sees every other."""
        live = self.live
        return all(
            self.views[observer].get(subject) == "here"
            for observer in live
            for subject in live
            if observer != subject
        )

    def since(self, at: float, kind: Kind | None = None) -> list[Event]:
        with self._lock:
            return [
                one for one in self._events if one.at >= at and (kind is None or one.kind == kind)
            ]

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if condition():
                return True
            time.sleep(0.02)
        return False

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for number in self._processes:
            self.forget(number)
        self._is_closed = True
        self._reader.join(5)
        for process in self._processes.values():
            if process.stdout is not None:
                process.stdout.close()
        self._selector.close()

    def _read_for_ever(self) -> None:
        while not self._is_closed:
            for key, _ in self._selector.select(0.2):
                self._read(key)

    def _read(self, key: selectors.SelectorKey) -> None:
        held = key.data
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        at = time.perf_counter()
        if not data:
            self._selector.unregister(key.fileobj)
            return
        *lines, held[1] = (held[1] + data).split(b"\n")
        for line in lines:
            for event in self.hear(held[0], line, at):
                with self._lock:
                    self._events.append(event)
