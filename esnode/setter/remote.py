"""The setter behind a stream of bytes: a loop on the privileged side, a client on the agent's.

Its own file because the same verbs serve both: nothing here knows what they mean. A frame is a
length of four bytes and that many bytes of a message. One request, one reply, in order. What is too
long, or is no message, is refused in one line; what ends in the middle of a frame is the end. After
a deadline the client's stream is out of step, so it is closed and stays so: whether the order was
carried out is then unknown, and the setter has to be reached anew.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Protocol

from cluster.codec import DOCUMENT_BYTES_MAX
from cluster.errors import Malformed, Misuse
from esnode.clock import monotonic_seconds
from esnode.setter.messages import (
    Refused,
    Reply,
    Request,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
)

DEADLINE_SECONDS = 15.0
"""More than the setter's own deadlines of one order together, so that its words arrive."""

_LENGTH = struct.Struct(">I")

Read = Callable[[int], bytes]
"""At most so many bytes; empty at the end of the stream."""
Write = Callable[[bytes], object]
"""All of these bytes."""


class SetterGone(Exception):
    """The setter cannot be asked, or did not answer in time; one line."""


class Setter(Protocol):
    """Whoever carries out orders: the setter itself, or the client of one elsewhere."""

    def ask(self, request: Request) -> Reply:
        """Do what is asked, blocking."""
        ...


def serve_setter(read: Read, write: Write, setter: Setter) -> None:
    """Answer requests until the stream ends, in whatever way. Limits stay as they are then."""
    with contextlib.suppress(OSError):
        while True:
            try:
                data = _read_frame(read)
            except Malformed as error:
                _write_frame(write, encode_reply(Refused(reason=str(error))))
                return
            if data is None:
                return
            _write_frame(write, _answer(data, setter))


def _answer(data: bytes, setter: Setter) -> bytes:
    try:
        request = decode_request(data)
    except Malformed as error:
        return encode_reply(Refused(reason=str(error)))
    try:
        return encode_reply(setter.ask(request))
    except Misuse as error:
        return encode_reply(Refused(reason=f"the reply has no encoding: {error}"))


class RemoteSetter:
    """A setter at the other end of a connected socket. Safe to use from several threads."""

    def __init__(
        self, connection: socket.socket, *, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        self._connection = connection
        self._deadline_seconds = deadline_seconds
        self._turn = threading.Lock()
        self._why_gone: str | None = None

    def ask(self, request: Request) -> Reply:
        """Have it done over there.

        Raises:
            SetterGone: no answer within the deadline, or no setter any more. Whether an order was
                carried out is unknown.
        """
        with self._turn:
            if self._why_gone is not None:
                raise SetterGone(self._why_gone)
            end = monotonic_seconds() + self._deadline_seconds
            try:
                self._hurry(end)
                _write_frame(self._connection.sendall, encode_request(request))
                data = _read_frame(lambda most: self._receive(most, end))
                if data is None:
                    raise SetterGone("the power setter has ended")
                return decode_reply(data)
            except TimeoutError:
                why = f"the power setter did not answer within {self._deadline_seconds:g} s"
            except OSError as error:
                why = f"the power setter cannot be reached: {error.strerror or error}"
            except Malformed as error:
                why = f"the power setter answers in no known words: {error}"
            except SetterGone as error:
                why = str(error)
            self._why_gone = why
            self._connection.close()
            raise SetterGone(why)

    def close(self) -> None:
        """Hang up. The setter's limits stay as they are."""
        with self._turn:
            self._why_gone = self._why_gone or "the connection to the power setter was closed"
            self._connection.close()

    def _receive(self, most: int, end: float) -> bytes:
        self._hurry(end)
        return self._connection.recv(most)

    def _hurry(self, end: float) -> None:
        left = end - monotonic_seconds()
        if left <= 0.0:
            raise TimeoutError
        self._connection.settimeout(left)


def _read_frame(read: Read) -> bytes | None:
    """The next message; ``None`` at the end of the stream.

    Raises:
        Malformed: the frame is longer than any message.
    """
    head = _read_whole(read, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > DOCUMENT_BYTES_MAX:
        raise Malformed(f"a message of {length} bytes; at most {DOCUMENT_BYTES_MAX} are read")
    return _read_whole(read, length)


def _read_whole(read: Read, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        more = read(length - len(data))
        if not more:
            return None
        data += more
    return bytes(data)


def _write_frame(write: Write, data: bytes) -> None:
    write(_LENGTH.pack(len(data)) + data)
