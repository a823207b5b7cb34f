"""Somebody on the network with a socket, and at most the key of one member."""

import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

import trio

from cluster.addresses import read_socket_address, to_socket_address
from cluster.codec import Value
from cluster.enrolment import NodeKeys
from cluster.gossip.effects import Rejected
from cluster.gossip.envelope import Reason, seal
from cluster.gossip.messages import (
    Address,
    Claim,
    Kind,
    MemberRecord,
    Message,
    Statement,
    Version,
)
from cluster.gossip.statements import claim_body, member_body, sign_statement
from cluster.gossip.wire import encode_message, join_messages
from cluster.host import Host
from cluster.ids import NodeId, RackId
from tests.hosts import Machine


class Thief(AbstractContextManager["Thief"]):
    """Sends what it likes from a port of its own, under the key that it has."""

    def __init__(self, keys: NodeKeys) -> None:
        self.keys = keys
        self.node_id: NodeId = keys.identity.node_id
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    @property
    def address(self) -> Address:
        return read_socket_address(self._socket.getsockname())

    def send(self, data: bytes, *to: Host) -> None:
        for host in to:
            place = to_socket_address(host.address, socket.AF_INET)
            assert place is not None
            self._socket.sendto(data, place)

    def datagram(
        self,
        *messages: Message,
        version: Version | None = None,
        sender: NodeId | None = None,
    ) -> bytes:
        """In its own name or another's; signed by it if a version is given."""
        return seal(
            join_messages(encode_message(one) for one in messages),
            cluster_id=self.keys.identity.cluster_id,
            sender=sender or self.node_id,
            version=version or Version(epoch=1, sequence=0),
            signer=None if version is None else self.keys.signer,
        )

    def statement(self, kind: Kind, version: Version, body: Sequence[Value]) -> Statement:
        return sign_statement(
            kind,
            version,
            tuple(body),
            cluster_id=self.keys.identity.cluster_id,
            signer=self.keys.signer,
        )

    def member_record(
        self,
        version: Version,
        *,
        of: NodeKeys | None = None,
        addresses: tuple[Address, ...] | None = None,
        rack: str | None = None,
    ) -> Statement:
        """What a node's record would say; under this thief's signature, whoever it is of."""
        identity = (of or self.keys).identity
        record = MemberRecord(
            name=identity.name,
            rack=identity.rack if rack is None else RackId(rack),
            addresses=(self.address,) if addresses is None else addresses,
        )
        made = self.statement(Kind.MEMBER, version, member_body(record))
        return made if of is None else in_the_name_of(made, identity.node_id)

    def claim(self, kind: Kind, about: Host, version: Version, sequence: int) -> Statement:
        claim = Claim(subject=about.keys.identity.node_id, subject_version=version)
        return self.statement(kind, Version(epoch=1, sequence=sequence), claim_body(claim))


def in_the_name_of(real: Statement, node_id: NodeId) -> Statement:
    """The same bytes, as if somebody else had said it."""
    return Statement(
        kind=real.kind,
        signer=node_id,
        version=real.version,
        body=real.body,
        encoded=real.encoded[:1] + bytes(node_id) + real.encoded[17:],
    )


def rejected(machine: Machine, reason: Reason) -> int:
    """How often a node has dropped something for this reason."""
    return sum(isinstance(one, Rejected) and one.reason is reason for one in machine.heard)


async def until_rejected(machine: Machine, reason: Reason, count: int = 1) -> None:
    with trio.fail_after(5.0):
        while rejected(machine, reason) < count:  # noqa: ASYNC110  # nobody is told of it
            await trio.sleep(0.01)
