"""A fleet of HashiCorp serf agents, joined over their RPC, read by their log lines."""

import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgpack

from tests.benchmarks.gossip.fleet import START_SECONDS, Event, Fleet, Kind, address_of

RPC_PORT = 7373
_SAID = re.compile(
    rb"serf: Event(?P<event>MemberJoin|MemberFailed|MemberLeave): n(?P<member>\d+) "
    rb"|agent: Received event: user-event: (?P<user>\S+)"
    rb"|memberlist: Suspect n(?P<suspect>\d+) has failed"
)


class _Rpc:
    """Sends commands and throws away the answers."""

    def __init__(self, host: str) -> None:
        end = time.perf_counter() + START_SECONDS
        while True:
            try:
                self._socket = socket.create_connection((host, RPC_PORT), timeout=5)
                break
            except OSError:
                if time.perf_counter() > end:
                    raise SystemExit("a serf agent does not start") from None
                time.sleep(0.05)
        self._number = 0
        self.call("handshake", {"Version": 1})
        self._socket.recv(4096)

    def call(self, command: str, body: dict[str, object]) -> None:
        head = {"Command": command, "Seq": self._number}
        self._number += 1
        self._socket.setblocking(False)
        try:
            while self._number > 1 and self._socket.recv(1 << 16):
                pass
        except BlockingIOError:
            pass
        self._socket.settimeout(5)
        # serf's decoder knows only the byte strings of msgpack's first version.
        self._socket.sendall(
            msgpack.packb(head, use_bin_type=False) + msgpack.packb(body, use_bin_type=False)
        )

    def close(self) -> None:
        self._socket.close()


class SerfFleet(Fleet):
    """serf with its profile for local networks, every agent alone until it joins the first."""

    name = "serf"
    port = 7946
    logs_to_output = True

    def __init__(self, count: int, folder: Path) -> None:
        super().__init__(count, folder)
        self._rpcs: dict[int, _Rpc] = {}
        self._publishing: threading.Thread | None = None
        self._is_publishing = False
        self._turns_total = 0
        self.published: dict[str, float] = {}
        """When each event was handed in, by its name."""

    def command(self, number: int) -> list[str]:
        host = address_of(number)
        return [
            "serf",
            "agent",
            f"-bind={host}:{self.port}",
            f"-rpc-addr={host}:{RPC_PORT}",
            f"-node=n{number}",
            "-profile=lan",
            "-log-level=info",
        ]

    def hear(self, number: int, line: bytes, at: float) -> Iterator[Event]:
        match = _SAID.search(line)
        if match is None:
            return
        if match["user"]:
            name = match["user"].decode()
            origin = int(name.partition(".")[0])
            yield Event(at=at, observer=number, kind="user", subject=origin, detail=name)
        elif match["suspect"]:
            # Its members still show it as alive.
            yield Event(at=at, observer=number, kind="suspect", subject=int(match["suspect"]))
        else:
            subject = int(match["member"])
            kind: Kind = "here" if match["event"] == b"MemberJoin" else "failed"
            self.views[number][subject] = kind
            yield Event(at=at, observer=number, kind=kind, subject=subject)

    def hold(self, number: int) -> None:
        self._rpcs[number] = _Rpc(address_of(number))

    def go(self, numbers: Iterable[int]) -> None:
        existing = [f"{address_of(0)}:{self.port}"]
        for number in numbers:
            if number != 0:
                self._rpcs[number].call("join", {"Existing": existing, "Replay": False})

    def forget(self, number: int) -> None:
        super().forget(number)
        rpc = self._rpcs.pop(number, None)
        if rpc is not None:
            rpc.close()

    def publish(self, size_bytes: int) -> None:
        self._is_publishing = False
        if self._publishing is not None:
            self._publishing.join()
            self._publishing = None
        if size_bytes:
            self._is_publishing = True
            self._publishing = threading.Thread(
                target=self._publish_for_ever, args=(size_bytes,), daemon=True
            )
            self._publishing.start()

    def _publish_for_ever(self, size_bytes: int) -> None:
        """Each agent once a second, spread over it."""
        due = time.perf_counter()
        while self._is_publishing:
            for number in self.live:
                name = f"{number}.{self._turns_total}"
                self.published[name] = time.perf_counter()
                body = {"Name": name, "Payload": b"y" * size_bytes, "Coalesce": False}
                self._rpcs[number].call("event", body)
                due += 1.0 / self.count
                time.sleep(max(0.0, due - time.perf_counter()))
            self._turns_total += 1

    def close(self) -> None:
        self.publish(0)
        super().close()
