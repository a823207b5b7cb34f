"""One TLS connection between two nodes: frames both ways, after each has said who it is.

Its own file because caller and called say and check the same. Whatever a peer or the network does
wrong here ends in one exception with one line, `StreamFailed`; what a frame cannot be is
`Malformed`. At most one frame and one TLS record are held, of what comes in and of what goes out.
Deadlines are the caller's. It must not know what is asked, nor whether the peer is allowed to ask.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from cluster.errors import Malformed
from cluster.gossip.messages import Address
from cluster.stream_frames import Frame, FrameReader, Hello, decode_frame, encode_frame

Introduce = Callable[[Address], Hello]
"""What this node says of itself to whom it sees at an address."""

_RECEIVE_BYTES = 16 * 1024
_RECORD_BYTES = 16 * 1024
"""What one TLS record holds. Source: RFC 8446, section 5.1."""


class StreamFailed(Exception):
    """The other side could not be talked to; one line that says where and why."""


class StreamRefused(StreamFailed):
    """The other side answered that it will not; the line ends with its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerHello:
    """Who is at the other end. That it holds the key is proved, and nothing else."""

    hello: Hello
    source: Address
    """Where its end of the connection is; the port of a caller is a passing one."""


@dataclass(slots=True)
class StreamTraffic:
    """Bytes of frames since the start, without those of TLS, TCP and IP."""

    received_bytes_total: int = 0
    sent_bytes_total: int = 0


class Conversation:
    """One connection, at either end."""

    def __init__(
        self,
        stream: trio.SocketStream,
        context: ssl.SSLContext,
        *,
        peer_address: Address,
        is_server: bool,
        traffic: StreamTraffic,
    ) -> None:
        # Nobody waits for the other's good-bye: each answer ends with a frame that says so.
        self._stream = trio.SSLStream(stream, context, server_side=is_server, https_compatible=True)
        self._peer_address = peer_address
        self._traffic = traffic
        self._reader = FrameReader()

    async def begin(self, introduce: Introduce) -> PeerHello:
        """Shake hands, and tell each other who one is.

        Raises:
            StreamFailed: the peer is a stranger, or the connection broke.
            Malformed: it did not say hello, or not with the certificate that TLS has seen.
        """
        own = introduce(self._peer_address)
        with _one_line():
            await self._stream.do_handshake()
        await self.send(own)
        hello = await self.receive()
        if hello is None:
            raise StreamFailed("closed before it said who it is")
        if not isinstance(hello, Hello):
            raise Malformed("a first frame that is no hello")
        if self._stream.getpeercert(binary_form=True) != hello.certificate:
            raise Malformed("a hello with another certificate than that of the connection")
        return PeerHello(hello=hello, source=self._peer_address)

    async def send(self, frame: Frame) -> None:
        """Send one frame; waits for as long as the peer does not read.

        Raises:
            StreamFailed: the connection broke.
        """
        await self._send(encode_frame(frame))

    async def send_many(self, frames: Iterable[Frame]) -> None:
        """Send these one after another; small ones together, since each sending costs.

        Raises:
            StreamFailed: the connection broke.
        """
        held = bytearray()
        for frame in frames:
            held += encode_frame(frame)
            if len(held) >= _RECORD_BYTES:
                await self._send(bytes(held))
                held.clear()
        if held:
            await self._send(bytes(held))

    async def _send(self, data: bytes) -> None:
        with _one_line():
            await self._stream.send_all(data)
        self._traffic.sent_bytes_total += len(data)

    async def receive(self) -> Frame | None:
        """The next frame of a known kind; None if the peer has closed between two.

        Raises:
            StreamFailed: the connection broke, or closed within a frame.
            Malformed: what came is no frame.
        """
        while True:
            document = self._reader.next_document()
            if document is not None:
                frame = decode_frame(document)
                if frame is not None:
                    return frame
                continue
            with _one_line():
                data = await self._stream.receive_some(_RECEIVE_BYTES)
            if not data:
                if self._reader.is_within_frame:
                    raise StreamFailed("closed within a frame")
                return None
            self._traffic.received_bytes_total += len(data)
            self._reader.feed(bytes(data))

    async def cut(self) -> None:
        """Close at once; also when the caller is being cancelled."""
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self._stream)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except trio.BrokenResourceError as error:
        raise StreamFailed(_explain(error.__cause__)) from None
    except trio.ClosedResourceError:
        raise StreamFailed("closed on this side") from None


def _explain(cause: BaseException | None) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not of this cluster ({cause.verify_message})"
    if isinstance(cause, ssl.SSLEOFError):
        return "closed before it said who it is; it may have too many connections"
    if isinstance(cause, ssl.SSLError):
        reason = (cause.reason or "not TLS").lower().replace("_", " ")
        return f"it refuses our certificate ({reason})" if "alert" in reason else f"TLS: {reason}"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return "the connection broke"
