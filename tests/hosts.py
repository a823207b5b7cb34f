"""Real nodes of a cluster in one process, over loopback: real keys, sockets, streams and files."""

import random
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio

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
from cluster.identity.operator_records import (
    OperatorAdded,
    OperatorRecord,
    SignedRecord,
    Statement,
    log_root,
    sign_record,
)
from cluster.ids import ClusterName, NodeName, OperatorId, RackId
from cluster.peer import Effect
from cluster.signatures import Signer


def boottime_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def unix_seconds() -> int:
    return int(time.time())  # noqa: TID251  # tests are an edge


class Cluster:
    """An authority, and how nodes come to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority: AuthorityKeys = found_cluster(
            ClusterName("lab"), now_unix_seconds=unix_seconds(), random_bytes=secrets.token_bytes
        )
        folder.mkdir(exist_ok=True)
        self.records: list[SignedRecord] = []
        self.operator = add_operator(
            self.authority,
            NodeName("ada"),
            now_unix_seconds=unix_seconds(),
            random_bytes=secrets.token_bytes,
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
            random_bytes=secrets.token_bytes,
        )
        keys = join(
            open_invite(token),
            NodeName(name),
            now_unix_seconds=unix_seconds(),
            random_bytes=secrets.token_bytes,
        )
        folder = self.folder / name
        folder.mkdir()
        save_node(node_folder(folder), keys)
        return Machine(keys=keys, folder=folder)

    def introduce_operator(self) -> SignedRecord:
        added = OperatorAdded(certificate_der=self.operator.certificate.der)
        authority = OperatorId(self.authority.authority.cluster_id)
        return self._sign(added, self.authority.signer, authority)

    def say(self, statement: Statement) -> SignedRecord:
        operator_id = self.operator.operator.operator_id
        return self._sign(statement, self.operator.signer, operator_id)

    def _sign(self, statement: Statement, signer: Signer, by: OperatorId) -> SignedRecord:
        cluster_id = self.authority.authority.cluster_id
        head = self.records[-1] if self.records else None
        record = OperatorRecord(
            cluster_id=cluster_id,
            sequence=len(self.records) + 1,
            previous=log_root(cluster_id) if head is None else head.hash,
            statement=statement,
            signed_by=by,
            written_unix_seconds=unix_seconds(),
        )
        self.records.append(sign_record(record, signer))
        return self.records[-1]


@dataclass
class Machine:
    """One machine's disk and key."""

    keys: NodeKeys
    folder: Path
    heard: list[Effect] = field(default_factory=list)

    def seek(self, *seeds: Address) -> None:
        self.keys = replace(self.keys, seeds=seeds)

    @asynccontextmanager
    async def running(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        gossip: GossipSettings | None = None,
        clock: Callable[[], float] = boottime_seconds,
    ) -> AsyncIterator[Host]:
        sockets = open_both_sockets(host, port)
        node = Host(
            keys=self.keys,
            state_folder=self.folder,
            sockets=sockets,
            settings=HostSettings(gossip=gossip or GossipSettings()),
            clock=clock,
            unix_clock=unix_seconds,
            rng=random.Random(secrets.token_bytes(8)),
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
        while not condition():  # noqa: ASYNC110  # what is waited for tells nobody
            await trio.sleep(0.01)


def sees(node: Host) -> dict[str, str]:
    """Who is what to this node, by name."""
    return {one.name: str(one.status) for one in node.view().gossip.members}
