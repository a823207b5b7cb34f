"""Real nodes of a cluster in one process, over loopback: real keys, sockets, streams and files."""

import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from cluster.addresses import read_socket_address
from cluster.binding import open_both_sockets
from cluster.credentials import save_node
from cluster.enrolment import (
    AuthorityKeys,
    InviteWish,
    NodeKeys,
    add_operator,
    found_cluster,
    issue_invite,
    join,
    open_invite,
)
from cluster.gossip.messages import Address
from cluster.gossip.settings import GossipSettings
from cluster.host import Host, HostSettings
from cluster.identity.files import node_folder
from cluster.ids import ClusterName, NodeName, RackId
from cluster.peer import Effect


def boottime_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def unix_seconds() -> int:
    return int(time.time())  # noqa: TID251  # tests are an edge


class Cluster:
    """An authority, and how nodes come to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority: AuthorityKeys = found_cluster(
            ClusterName("lab"), now_unix_seconds=unix_seconds(), random_bytes=os.urandom
        )
        self.operator = add_operator(
            self.authority,
            NodeName("ada"),
            now_unix_seconds=unix_seconds(),
            random_bytes=os.urandom,
        )

    def enrol(
        self,
        name: str,
        *,
        rack: str = "r01",
        seeds: tuple[Address, ...] = (),
        may_found: bool = False,
    ) -> "Machine":
        wish = InviteWish(
            rack=RackId(rack),
            ttl_seconds=3600,
            may_found=may_found,
            uses=1 if may_found else None,
        )
        token = issue_invite(
            self.authority,
            wish,
            seeds=seeds,
            now_unix_seconds=unix_seconds(),
            random_bytes=os.urandom,
        )
        keys = join(
            open_invite(token),
            NodeName(name),
            now_unix_seconds=unix_seconds(),
            random_bytes=os.urandom,
        )
        folder = self.folder / name
        folder.mkdir()
        save_node(node_folder(folder), keys)
        return Machine(keys=keys, folder=folder)


@dataclass
class Machine:
    """One machine's disk and key."""

    keys: NodeKeys
    folder: Path
    heard: list[Effect] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Host]:
        sockets = open_both_sockets(host, port)
        node = Host(
            keys=self.keys,
            state_folder=self.folder,
            sockets=sockets,
            settings=HostSettings(gossip=GossipSettings()),
            clock=boottime_seconds,
            unix_clock=unix_seconds,
            rng=random.Random(os.urandom(8)),
            hear=self.heard.append,
        )
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(node.run)
                yield node
                nursery.cancel_scope.cancel()
        finally:
            for one in sockets:
                one.close()


async def until(condition: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Wait for something that will come true."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.sleep(0.01)


def sees(node: Host) -> dict[str, str]:
    """Who is what to this node, by name."""
    return {one.name: str(one.status) for one in node.view().gossip.members}
