"""Both ends of streams over real sockets, with real certificates, and a peer without manners."""

import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio
import trio.testing

from cluster.addresses import read_socket_address
from cluster.binding import open_tcp_socket
from cluster.conversation import PeerHello
from cluster.credentials import save_node
from cluster.enrolment import NodeKeys
from cluster.errors import PeerFault
from cluster.gossip.messages import Address
from cluster.stream import StreamClient, StreamLimits, StreamServer
from cluster.stream_frames import Hello
from cluster.tls import client_context, server_context
from tests.identities import Lab

LAB = Lab()
QUICK = StreamLimits(handshake_seconds=1.0, idle_seconds=1.0, answer_seconds=1.0, ask_seconds=2.0)
"""For tests of what is given up: the same rules, sooner."""
USUAL = StreamLimits()


@dataclass(kw_only=True)
class End:
    """One node, as far as streams need it."""

    keys: NodeKeys
    folder: Path
    advertised: Address
    lab: Lab

    @classmethod
    def make(cls, folder: Path, name: str = "gpu-01", lab: Lab = LAB, **invite: object) -> "End":
        keys = lab.join(lab.invite(**invite), name)  # type: ignore[arg-type]  # wishes of a test
        place = folder / keys.identity.node_id.short
        save_node(place, keys)
        return cls(keys=keys, folder=place, advertised=Address(f"{name}:7947"), lab=lab)

    def introduce(self, seen: Address) -> Hello:
        return Hello(
            certificate=self.keys.chain[0].der,
            issuer_certificate=self.keys.chain[1].der,
            advertised=self.advertised,
            seen=seen,
            agent_version="0.2.0",
        )

    def server_context(self) -> ssl.SSLContext:
        return server_context(self.folder, self.lab.keys.authority)

    def client_context(self) -> ssl.SSLContext:
        return client_context(self.folder, self.lab.keys.authority)

    def client(self, limits: StreamLimits = USUAL, **more: str) -> StreamClient:
        """One that keeps no connection, since nobody runs it."""
        return StreamClient(
            context=self.client_context(), introduce=self.introduce, limits=limits, **more
        )

    @asynccontextmanager
    async def keeping_client(self, limits: StreamLimits = USUAL) -> AsyncIterator[StreamClient]:
        client = self.client(limits)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            await trio.testing.wait_all_tasks_blocked()
            yield client
            nursery.cancel_scope.cancel()


@dataclass
class Answering:
    """Answers by the kind of the question, and remembers who asked."""

    asked: list[tuple[PeerHello, str, bytes]] = field(default_factory=list)
    made: int = 0

    async def __call__(self, peer: PeerHello, kind: str, body: bytes) -> Iterable[bytes]:
        self.asked.append((peer, kind, body))
        if kind == "echo":
            return [body]
        if kind == "refuse":
            raise PeerFault("not for you\nreally")
        if kind == "slow":
            await trio.sleep(10)
        if kind == "bug":
            raise KeyError("a bug")
        if kind == "many":
            return [b"%d" % number for number in range(5000)]
        if kind == "endless":
            return self._endless()
        return [bytes(60_000)] * int(kind)

    def _endless(self) -> Iterable[bytes]:
        while True:
            self.made += 1
            yield bytes(60_000)


@dataclass
class Served:
    server: StreamServer
    address: Address
    answering: Answering
    notes: list[str]

    @property
    def where(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)


@asynccontextmanager
async def serving(
    end: End, host: str = "127.0.0.1", limits: StreamLimits = USUAL
) -> AsyncIterator[Served]:
    """A server in the background; cut at the end."""
    listener = open_tcp_socket(host, 0)
    answering, notes = Answering(), list[str]()
    server = StreamServer(
        context=end.server_context(),
        introduce=end.introduce,
        answer=answering,
        limits=limits,
        note=lambda source, line: notes.append(line),
    )
    address = read_socket_address(listener.getsockname())
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run, [listener])
        yield Served(server, address, answering, notes)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def impostor(answers: Sequence[bytes], end: End) -> AsyncIterator[Address]:
    """A server with a right certificate that sends these bytes after its handshake, and waits."""
    listener = open_tcp_socket("127.0.0.1", 0)
    context = end.server_context()

    async def behave(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            for answer in answers:
                await wrapped.send_all(answer)
            while await wrapped.receive_some(65_536):
                pass
        except trio.BrokenResourceError:
            pass
        finally:
            await trio.aclose_forcefully(wrapped)

    async with trio.open_nursery() as nursery:
        socket_listener = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        nursery.start_soon(trio.serve_listeners, behave, [socket_listener])
        yield read_socket_address(listener.getsockname())
        nursery.cancel_scope.cancel()


async def tls_to(served: Served, end: End) -> trio.SSLStream[trio.SocketStream]:
    """A connection of ours whose bytes are written by hand."""
    stream = await trio.open_tcp_stream(*served.where)
    return trio.SSLStream(stream, end.client_context(), https_compatible=True)


async def is_closed(stream: trio.abc.Stream, seconds: float = 5.0) -> bool:
    """Whether the other side closes within the time; what it sends before is read away."""
    with trio.move_on_after(seconds):
        try:
            while await stream.receive_some(65_536):
                pass
        except trio.BrokenResourceError:
            pass
        return True
    return False


def silent_listener() -> tuple[socket.socket, Address]:
    """Takes connections (the kernel does) and never says a word."""
    listener = open_tcp_socket("127.0.0.1", 0)
    return listener, read_socket_address(listener.getsockname())
