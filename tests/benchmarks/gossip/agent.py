"""`python -m tests.benchmarks.gossip.agent FOLDER HOST`: one node, gossip only.

Says `{"ready": true}` once it has its sockets, and waits for a line on its standard input:

    go            become a member
    publish SIZE  sign a state of so many bytes each second; 0 ends that
    sample S      look each S seconds how old the newest state of each rack mate is; 0 ends that
    report        print what was counted since the start; ages of states since the last report

Everything that it sees of others goes to standard output as a line of JSON, with CLOCK_MONOTONIC.
"""

import gc
import json
import os
import random
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

import trio

from cluster.binding import open_both_sockets
from cluster.credentials import load_node
from cluster.gossip.effects import MemberChanged, Paused, Rejected
from cluster.host import Host, HostSettings
from cluster.identity.files import node_folder
from cluster.peer import Alarm, Effect

PORT = 7947
AGE_BUCKET_SECONDS = 0.01
_STAMP_BYTES = 8


def boottime_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def unix_seconds() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)


def say(**fields: object) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


class Agent:
    """One node and the commands that it obeys."""

    def __init__(self, folder: Path, host: str) -> None:
        self.publishing = trio.CancelScope()
        self.sampling = trio.CancelScope()
        self.rejected: Counter[str] = Counter()
        self.ages: Counter[int] = Counter()
        self.missing_count = 0
        self.rng = random.Random(secrets.randbits(128))
        self.host = Host(
            keys=load_node(node_folder(folder)),
            state_folder=folder,
            sockets=open_both_sockets(host, PORT),
            settings=HostSettings(agent_version="0.2.0"),
            clock=boottime_seconds,
            unix_clock=unix_seconds,
            rng=self.rng,
            hear=self.hear,
        )

    def hear(self, effect: Effect) -> None:
        match effect:
            case MemberChanged(node_id=node_id, after=after):
                say(at=time.perf_counter(), id=node_id.hex(), after=str(after))
            case Paused(pause_seconds=seconds):
                say(at=time.perf_counter(), paused=seconds)
            case Rejected(reason=reason):
                self.rejected[str(reason)] += 1
            case Alarm(line=line):
                print(line, file=sys.stderr, flush=True)
            case _:
                pass

    async def obey(self, nursery: trio.Nursery) -> None:
        """Commands, until standard input ends."""
        held = b""
        while True:
            await trio.lowlevel.wait_readable(0)
            data = os.read(0, 4096)
            if not data:
                nursery.cancel_scope.cancel()
                return
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                word, _, value = line.decode().partition(" ")
                await self.do(word, value, nursery)

    async def do(self, word: str, value: str, nursery: trio.Nursery) -> None:
        match word:
            case "go":
                await nursery.start(self.host.run)
            case "publish":
                self.publishing.cancel()
                if int(value):
                    nursery.start_soon(self.publish, int(value))
            case "sample":
                self.sampling.cancel()
                if float(value):
                    nursery.start_soon(self.sample, float(value))
            case "report":
                self.report()
            case _:
                raise SystemExit(f"no command: {word}")

    async def publish(self, size_bytes: int) -> None:
        """Once a second, at a moment of its own within it."""
        padding = self.rng.randbytes(size_bytes - _STAMP_BYTES)
        with trio.CancelScope() as self.publishing:
            due = trio.current_time() + self.rng.random()
            while True:
                await trio.sleep_until(due)
                due += 1.0
                stamp = time.perf_counter_ns().to_bytes(_STAMP_BYTES, "big")
                self.host.publish(stamp + padding, None)

    async def sample(self, interval_seconds: float) -> None:
        with trio.CancelScope() as self.sampling:
            while True:
                await trio.sleep(interval_seconds)
                now_ns = time.perf_counter_ns()
                for member in self.host.view().gossip.members:
                    if not member.state:
                        self.missing_count += 1
                        continue
                    made_ns = int.from_bytes(member.state[:_STAMP_BYTES], "big")
                    self.ages[round((now_ns - made_ns) / 1e9 / AGE_BUCKET_SECONDS)] += 1

    def report(self) -> None:
        datagrams = self.host.datagrams
        say(
            report={
                "ages": dict(self.ages),
                "missing": self.missing_count,
                "received": dict(datagrams.received.datagrams_total),
                "received_bytes": dict(datagrams.received.bytes_total),
                "sent": dict(datagrams.sent.datagrams_total),
                "errors": dict(datagrams.errors_total),
                "rejected": dict(self.rejected),
                "lag_max_seconds": datagrams.take_lag_max_seconds(),
                "streams": dict(self.host.stream_client.exchanges_total),
                "checks": self.host.view().gossip.checks_total,
            }
        )
        self.ages.clear()
        self.missing_count = 0


async def main(folder: Path, host: str) -> None:
    agent = Agent(folder, host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.obey, nursery)
        say(ready=True)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # as the agent does: what start-up made need not be walked again
    trio.run(main, Path(sys.argv[1]), sys.argv[2])
