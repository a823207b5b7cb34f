"""A fleet of our gossip-only agents, with a cluster made for them."""

import json
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from cluster.credentials import save_node
from cluster.enrolment import (
    InviteWish,
    OpenedInvite,
    found_cluster,
    issue_invite,
    join,
    open_invite,
)
from cluster.identity.files import node_folder
from cluster.ids import ClusterName, NodeName, RackId
from tests.benchmarks.gossip.agent import AGE_BUCKET_SECONDS, PORT, unix_seconds
from tests.benchmarks.gossip.fleet import START_SECONDS, Event, Fleet, Kind, address_of

_KINDS: dict[str, Kind] = {
    "alive": "here",
    "degraded": "here",
    "suspect": "suspect",
    "failed": "failed",
    "left": "gone",
    "removed": "gone",
}
Report = dict[str, Any]


class OurFleet(Fleet):
    """Everybody knows the first node as a seed, and is new to the cluster."""

    name = "ours"
    port = PORT

    def __init__(self, count: int, folder: Path, *, rack_size: int) -> None:
        super().__init__(count, folder)
        self._numbers: dict[str, int] = {}
        self._ready = [threading.Event() for _ in range(count)]
        self._reports: dict[int, Report] = {}
        self._enrol(rack_size)

    def _enrol(self, rack_size: int) -> None:
        now = int(unix_seconds())
        authority = found_cluster(
            ClusterName("bench"), now_unix_seconds=now, random_bytes=secrets.token_bytes
        )

        def invite(rack: str, *, may_found: bool) -> OpenedInvite:
            wish = InviteWish(
                rack=RackId(rack),
                ttl_seconds=86_400,
                may_found=may_found,
                uses=1 if may_found else None,
            )
            seeds = () if may_found else (f"{address_of(0)}:{PORT}",)
            token = issue_invite(
                authority, wish, seeds=seeds, now_unix_seconds=now, random_bytes=secrets.token_bytes
            )
            return open_invite(token)

        invites: dict[str, OpenedInvite] = {}
        for number in range(self.count):
            rack = f"r{number // rack_size:02}"
            if number == 0:
                used = invite(rack, may_found=True)
            else:
                used = invites.setdefault(rack, invite(rack, may_found=False))
            keys = join(
                used, NodeName(f"n{number}"), now_unix_seconds=now, random_bytes=secrets.token_bytes
            )
            folder = self._folder_of(number)
            folder.mkdir()
            save_node(node_folder(folder), keys)
            self._numbers[keys.identity.node_id.hex()] = number

    def _folder_of(self, number: int) -> Path:
        return self.folder / f"n{number}"

    def command(self, number: int) -> list[str]:
        self._ready[number] = threading.Event()
        return [
            sys.executable,
            "-m",
            "tests.benchmarks.gossip.agent",
            str(self._folder_of(number)),
            address_of(number),
        ]

    def hear(self, number: int, line: bytes, at: float) -> Iterator[Event]:
        said = json.loads(line)
        if "ready" in said:
            self._ready[number].set()
        elif "report" in said:
            self._reports[number] = said["report"]
        elif "after" in said:
            kind, subject = _KINDS[said["after"]], self._numbers[said["id"]]
            self.views[number][subject] = kind
            yield Event(at=said["at"], observer=number, kind=kind, subject=subject)

    def hold(self, number: int) -> None:
        if not self._ready[number].wait(START_SECONDS):
            log = (self.folder / f"{self.name}-{number}.log").read_text()
            raise SystemExit(f"agent {number} did not start: {log.strip()[-500:]}")

    def go(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.tell(number, "go")

    def publish(self, size_bytes: int) -> None:
        for number in self.live:
            self.tell(number, f"publish {size_bytes}")

    def sample(self, interval_seconds: float) -> None:
        """Every node looks how old its newest states are."""
        for number in self.live:
            self.tell(number, f"sample {interval_seconds}")

    def reports(self) -> list[Report]:
        """What every node has counted since it was asked before."""
        self._reports.clear()
        live = self.live
        for number in live:
            self.tell(number, "report")
        if not self.wait(lambda: len(self._reports) == len(live), 20):
            raise SystemExit("an agent does not report")
        return [self._reports[number] for number in live]


def ages_of(reports: Iterable[Report]) -> tuple[list[float], int]:
    """Ages of states in order, and how often there was none."""
    buckets: Counter[int] = Counter()
    missing = 0
    for report in reports:
        buckets.update({int(k): v for k, v in cast("dict[str, int]", report["ages"]).items()})
        missing += report["missing"]
    return [bucket * AGE_BUCKET_SECONDS for bucket in sorted(buckets.elements())], missing
