"""Streams between nodes: who calls, who is called, and what either may cost the other.

Its own file because every limit on a stranger stands here. What does not fit a datagram goes this
way: certificates, full lists, detail. A caller asks one question after another on a connection; an
answer is any number of parts and an end. Everything has a deadline, every buffer a bound, and what
goes wrong in a connection ends that one alone. An error in what answers (a bug of ours) does not:
it ends the server. It must not know what is asked, nor who may ask: the answerer judges that.
"""

import ipaddress
import itertools
import os
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import trio

from cluster.addresses import read_socket_address, split_address
from cluster.conversation import (
    Conversation,
    Introduce,
    PeerHello,
    StreamFailed,
    StreamRefused,
    StreamTraffic,
)
from cluster.errors import Malformed, PeerFault
from cluster.gossip.messages import Address
from cluster.stream_frames import End, Fault, Part, Request

Answerer: TypeAlias = Callable[[PeerHello, str, bytes], Awaitable[Iterable[bytes]]]
"""Given who asks, the kind of the question and its body: the parts of the answer, each at most
`stream_frames.BODY_BYTES_MAX`. Raises `PeerFault` to refuse; the peer is sent its line."""
Note: TypeAlias = Callable[[Address, str], None]
"""Told where something went wrong and what, in one line; for a log that limits its own rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """What a peer may cost, and how long anything may take."""

    connections_max: int = 64
    connections_per_source_max: int = 8
    handshake_seconds: float = 5.0
    """Until both have said hello."""
    idle_seconds: float = 30.0
    """For the next question to come whole."""
    answer_seconds: float = 10.0
    """For an answer to be made and taken."""
    ask_seconds: float = 10.0
    """For all that a caller does: wait for its turn, connect, ask, be answered."""
    answer_bytes_max: int = 16 * 1024 * 1024
    exchanges_max: int = 16
    """At once, as a caller; each with another address."""
    kept_max: int = 8
    """Connections without an exchange that are kept for the next."""
    kept_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    peer: PeerHello
    parts: tuple[bytes, ...] = field(repr=False)


def _ignore(_address: Address, _line: str) -> None:
    """Where nobody wants to know."""


class StreamServer:
    """Answers other nodes."""

    def __init__(
        self,
        *,
        context: ssl.SSLContext,
        introduce: Introduce,
        answer: Answerer,
        limits: StreamLimits | None = None,
        note: Note = _ignore,
    ) -> None:
        self._context = context
        self._introduce = introduce
        self._answer = answer
        self._limits = limits or StreamLimits()
        self._note = note
        self._hosts: Counter[str] = Counter()
        self.traffic = StreamTraffic()
        self.connections_total: Counter[str] = Counter()
        """By what became of them: `met`, `full`, `too-slow`, `malformed`, `failed`."""
        self.requests_total: Counter[str] = Counter()
        """By how they ended: `answered`, `refused`, `too-slow`."""

    @property
    def connections_count(self) -> int:
        """Those that are open."""
        return self._hosts.total()

    async def run(
        self,
        sockets: Sequence[socket.socket],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve on listening sockets until cancelled; then every connection is cut."""
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in sockets]
        task_status.started()
        await trio.serve_listeners(self._serve, listeners)

    async def _serve(self, stream: trio.SocketStream) -> None:
        try:
            source = read_socket_address(stream.socket.getpeername())
        except OSError:  # it has left already
            await trio.aclose_forcefully(stream)
            return
        host, _ = split_address(source)
        limits = self._limits
        if (
            self.connections_count >= limits.connections_max
            or self._hosts[host] >= limits.connections_per_source_max
        ):
            self.connections_total["full"] += 1
            await trio.aclose_forcefully(stream)
            return
        self._hosts[host] += 1
        conversation = Conversation(
            stream, self._context, peer_address=source, is_server=True, traffic=self.traffic
        )
        try:
            await self._converse(conversation)
        except trio.TooSlowError:
            self._count("too-slow", source, "too slow")
        except Malformed as error:
            self._count("malformed", source, str(error))
        except StreamFailed as error:
            self._count("failed", source, str(error))
        finally:
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]
            await conversation.cut()

    def _count(self, what: str, source: Address, line: str) -> None:
        self.connections_total[what] += 1
        self._note(source, line)

    async def _converse(self, conversation: Conversation) -> None:
        with trio.fail_after(self._limits.handshake_seconds):
            peer = await conversation.begin(self._introduce)
        self.connections_total["met"] += 1
        while (request := await self._next_request(conversation)) is not None:
            await self._respond(conversation, peer, request)

    async def _next_request(self, conversation: Conversation) -> Request | None:
        with trio.move_on_after(self._limits.idle_seconds):
            frame = await conversation.receive()
            if frame is not None and not isinstance(frame, Request):
                raise Malformed("a frame that is no request where one belongs")
            return frame
        return None

    async def _respond(self, conversation: Conversation, peer: PeerHello, request: Request) -> None:
        try:
            with trio.fail_after(self._limits.answer_seconds):
                try:
                    parts = await self._answer(peer, request.kind, request.body)
                    frames = (Part(body=part) for part in parts)
                    await conversation.send_many(itertools.chain(frames, (End(),)))
                except PeerFault as fault:
                    self.requests_total["refused"] += 1
                    await conversation.send(Fault(line=str(fault)))
                    return
        except trio.TooSlowError:
            self.requests_total["too-slow"] += 1
            raise
        self.requests_total["answered"] += 1


@dataclass(slots=True)
class _Kept:
    conversation: Conversation
    peer: PeerHello
    since_seconds: float


class _ClosedMeanwhile(Exception):
    """A kept connection was closed by the other side before it answered anything."""


class StreamClient:
    """Asks other nodes."""

    def __init__(
        self,
        *,
        context: ssl.SSLContext,
        introduce: Introduce,
        bind_host: str = "",
        limits: StreamLimits | None = None,
    ) -> None:
        """Prepare to ask; from `bind_host` if that is one address and not all of them."""
        self._context = context
        self._introduce = introduce
        self._local_address = _one_address(bind_host)
        self._limits = limits or StreamLimits()
        self._turns: dict[Address, trio.Lock] = {}
        self._places = trio.CapacityLimiter(self._limits.exchanges_max)
        self._kept: dict[Address, _Kept] = {}
        self._has_kept = trio.Event()
        self._may_keep = False
        self.traffic = StreamTraffic()
        self.exchanges_total: Counter[str] = Counter()
        """By how they ended: `answered`, `refused`, `failed`."""

    async def run(self) -> None:
        """Keep connections for a while after their use, until cancelled; else none is kept."""
        self._may_keep = True
        try:
            while True:
                await self._has_kept.wait()
                await trio.sleep(self._limits.kept_seconds / 4)
                oldest = trio.current_time() - self._limits.kept_seconds
                await self._drop([a for a, one in self._kept.items() if one.since_seconds < oldest])
        finally:
            self._may_keep = False
            await self._drop(list(self._kept))

    @property
    def kept_address(self) -> Address | None:
        """With whom a connection is open and idle; the latest of several."""
        return next(reversed(self._kept), None)

    async def ask(self, address: Address, kind: str, body: bytes = b"") -> Answer:
        """Ask whoever is at an address.

        A question is asked again, once, if a kept connection turns out to be closed; so what a
        question leads to must not depend on how often it was asked.

        Raises:
            StreamRefused: the other side says no.
            StreamFailed: there is no answer, for whatever reason.
        """
        seconds = self._limits.ask_seconds
        try:
            with trio.fail_after(seconds):
                async with self._turn(address), self._places:
                    answer = await self._ask(address, Request(kind=kind, body=body))
        except trio.TooSlowError:
            self.exchanges_total["failed"] += 1
            raise StreamFailed(f"{address}: no answer within {seconds:g} s") from None
        except StreamRefused as error:
            self.exchanges_total["refused"] += 1
            raise StreamRefused(f"{address}: {error}") from None
        except (StreamFailed, Malformed) as error:
            self.exchanges_total["failed"] += 1
            raise StreamFailed(f"{address}: {error}") from None
        self.exchanges_total["answered"] += 1
        return answer

    @asynccontextmanager
    async def _turn(self, address: Address) -> AsyncIterator[None]:
        """One exchange an address at a time."""
        lock = self._turns.setdefault(address, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._turns.pop(address, None)

    async def _ask(self, address: Address, request: Request) -> Answer:
        kept = self._kept.pop(address, None)
        if kept is not None:
            try:
                return await self._exchange(address, kept.conversation, kept.peer, request)
            except _ClosedMeanwhile:
                pass
        conversation, peer = await self._connect(address)
        try:
            return await self._exchange(address, conversation, peer, request)
        except _ClosedMeanwhile as error:
            raise StreamFailed(str(error.__cause__ or "closed without an answer")) from None

    async def _connect(self, address: Address) -> tuple[Conversation, PeerHello]:
        host, port = split_address(address)
        if not _is_ip(host):
            # Peers choose what stands there: a name would be looked up, and may be none at all.
            raise StreamFailed("a name where an address belongs")
        seconds = self._limits.handshake_seconds
        try:
            with trio.fail_after(seconds):
                stream = await trio.open_tcp_stream(host, port, local_address=self._local_address)
                conversation = Conversation(
                    stream,
                    self._context,
                    peer_address=address,
                    is_server=False,
                    traffic=self.traffic,
                )
                try:
                    return conversation, await conversation.begin(self._introduce)
                except BaseException:
                    await conversation.cut()
                    raise
        except trio.TooSlowError:
            raise StreamFailed(f"no connection within {seconds:g} s") from None
        except OSError as error:
            raise StreamFailed(_explain(error)) from None

    async def _exchange(
        self, address: Address, conversation: Conversation, peer: PeerHello, request: Request
    ) -> Answer:
        """Ask on this connection; afterwards it is kept, or cut if anything went wrong."""
        parts: list[bytes] = []
        is_whole = False
        try:
            try:
                await conversation.send(request)
                frame = await conversation.receive()
            except StreamFailed as error:
                raise _ClosedMeanwhile from error
            left_bytes = self._limits.answer_bytes_max
            while isinstance(frame, Part):
                parts.append(frame.body)
                left_bytes -= len(frame.body)
                if left_bytes < 0:
                    raise StreamFailed("an answer that is too long")
                frame = await conversation.receive()
            is_whole = isinstance(frame, End | Fault)
        finally:
            if not is_whole:
                await conversation.cut()
        if isinstance(frame, Fault):
            await self._keep(address, conversation, peer)
            raise StreamRefused(frame.line)
        if frame is None and not parts:
            raise _ClosedMeanwhile
        if not isinstance(frame, End):
            raise StreamFailed("closed within an answer" if frame is None else "no answer came")
        await self._keep(address, conversation, peer)
        return Answer(peer=peer, parts=tuple(parts))

    async def _keep(self, address: Address, conversation: Conversation, peer: PeerHello) -> None:
        if not self._may_keep:
            await conversation.cut()
            return
        self._kept[address] = _Kept(conversation, peer, trio.current_time())
        if len(self._kept) > self._limits.kept_max:
            await self._drop([next(iter(self._kept))])
        self._has_kept.set()

    async def _drop(self, addresses: Iterable[Address]) -> None:
        for address in addresses:
            kept = self._kept.pop(address, None)
            if kept is not None:
                await kept.conversation.cut()
        if not self._kept:
            self._has_kept = trio.Event()


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _one_address(host: str) -> str | None:
    try:
        return None if ipaddress.ip_address(host).is_unspecified else host
    except ValueError:
        return None


def _explain(error: OSError) -> str:
    """Of several attempts the first tells most."""
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    found = cause if isinstance(cause, OSError) else error
    is_of_kernel = found.errno is not None and found.errno > 0
    return (os.strerror(found.errno or 0) if is_of_kernel else str(found.strerror)).lower()
