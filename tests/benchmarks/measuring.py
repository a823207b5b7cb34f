"""How CPU time, memory and latency are measured, and how the table is printed."""

import os
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    unit: str
    ours: float
    peer: float | None = None
    most: float | None = None
    """The target: ours is to be at most this."""
    most_ratio: float | None = None
    """The target: ours is to be at most this many times the peer's."""
    digits: int = 2

    @property
    def ratio(self) -> float | None:
        return self.ours / self.peer if self.peer else None

    @property
    def is_met(self) -> bool | None:
        """Whether all targets of the row are met; ``None`` where there is none to compare."""
        checks = []
        if self.most is not None:
            checks.append(self.ours <= self.most)
        if self.most_ratio is not None and self.ratio is not None:
            checks.append(self.ratio <= self.most_ratio)
        return all(checks) if checks else None

    def cells(self) -> list[str]:
        targets = []
        if self.most is not None:
            targets.append(f"<= {self.most:g} {self.unit}")
        if self.most_ratio is not None:
            targets.append(f"<= {self.most_ratio:g} x peer")
        verdict = {True: "met", False: "MISSED", None: ""}[self.is_met]
        return [
            self.what,
            "-" if self.peer is None else f"{self.peer:.{self.digits}f} {self.unit}",
            f"{self.ours:.{self.digits}f} {self.unit}",
            "-" if self.ratio is None else f"{self.ratio:.2f}",
            ", ".join(targets) or "-",
            verdict,
        ]


def print_table(rows: Sequence[Row]) -> None:
    header = ["what", "peer (node_exporter)", "ours", "ratio", "target", ""]
    table = [header, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    for line in table:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def machine_line() -> str:
    """What else the figures depend on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown processor",
    )
    load = ", ".join(Path("/proc/loadavg").read_text().split()[:3])
    times = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    steal_ratio = times[7] / sum(times) if len(times) > 7 else 0.0
    return (
        f"machine: {os.cpu_count()} CPUs ({model}), load average {load}, "
        f"{steal_ratio:.2%} stolen since boot"
    )


def cpu_seconds(pid: int) -> float:
    """Time on the processor of a process, all threads, those that have ended too.

    By the scheduler's own clock (clock_getcpuclockid(3)): `/proc/PID/stat` counts the ticks of a
    timer, which wrongs a process that wakes by timers for a millisecond.
    Source: MAKE_PROCESS_CPUCLOCK, linux/posix-timers_types.h.
    """
    return time.clock_gettime(~pid << 3 | 2)


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident and proportional set size."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        sizes[name] = int(rest.split()[0]) / 1024
    return sizes["Rss"], sizes["Pss"]


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


class Scraper:
    """A keep-alive client that asks for one page again and again, and costs little itself."""

    def __init__(self, port: int, path: str = "/metrics") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n".encode()
        )

    def scrape(self) -> bytes:
        """The body of one answer."""
        self._socket.sendall(self._request)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._receive()
        head, _, body = got.partition(b"\r\n\r\n")
        names = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if b"content-length" in names:
            parts, missing = [body], int(names[b"content-length"]) - len(body)
            while missing > 0:
                parts.append(self._receive())
                missing -= len(parts[-1])
            return b"".join(parts)
        while not body.endswith(b"\r\n0\r\n\r\n"):  # chunked
            body += self._receive()
        return body

    def _receive(self) -> bytes:
        block = self._socket.recv(1 << 18)
        if not block:
            raise ConnectionError("the server closed the connection")
        return block

    def close(self) -> None:
        self._socket.close()


@contextmanager
def scraper(port: int) -> Iterator[Scraper]:
    client = Scraper(port)
    try:
        yield client
    finally:
        client.close()


def latencies_ms(port: int, *, scrapes: int, clients: int = 1) -> list[float]:
    """Time of each scrape, with so many clients at once."""
    found: list[float] = []

    def work() -> None:
        with scraper(port) as client:
            client.scrape()
            for _ in range(scrapes // clients):
                started = time.perf_counter()
                client.scrape()
                found.append((time.perf_counter() - started) * 1000)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def seconds_per_call(call: Callable[[], object], *, calls: int, rounds: int = 7) -> float:
    """The median over rounds of the mean time of one call."""
    means = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(calls):
            call()
        means.append((time.perf_counter() - started) / calls)
    return median(means)


def count_samples(body: bytes) -> int:
    return sum(1 for line in body.splitlines() if line and not line.startswith(b"#"))
