"""What two nodes say over a stream, as bytes.

Its own file so that the form is checked without a socket. A frame is its length (u32, big-endian)
and so many bytes of one document, `[1, kind, ...]`. Fields are only appended: a reader ignores what
it does not know at the end, and passes over a frame of an unknown kind. Whatever the bytes, out
comes a frame, `None` or `Malformed`. It must not know who may ask for what.
"""

import struct
from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.codec import DOCUMENT_BYTES_MAX, Document, Value, decode_document, encode_document
from cluster.errors import Malformed, Misuse
from cluster.gossip.fields import ADDRESS_CHARACTERS_MAX
from cluster.gossip.messages import Address
from cluster.keyring import CERTIFICATE_BYTES_MAX

FRAME_FORMAT = 1
BODY_BYTES_MAX = DOCUMENT_BYTES_MAX - 512
"""What one request or one part of an answer holds; the rest is for the frame around it."""
KIND_CHARACTERS_MAX = 64
VERSION_CHARACTERS_MAX = 64
LINE_CHARACTERS_MAX = 300

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first frame of each side: who speaks, by certificates, and where each is seen."""

    certificate: bytes = field(repr=False)
    """The node's own, in DER; TLS has shown that it holds the key."""
    issuer_certificate: bytes = field(repr=False)
    advertised: Address
    """Where it wants to be found; empty if it does not know."""
    seen: Address
    """Where it sees whom it speaks to; the port of a caller is a passing one."""
    agent_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question. The next comes after the end of the answer."""

    kind: str
    body: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of the answer."""

    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The answer is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """There is no answer, or no more of it; one line says why."""

    line: str


Frame: TypeAlias = Hello | Request | Part | End | Fault


def encode_frame(frame: Frame) -> bytes:
    """A frame with its length.

    Raises:
        Misuse: it is larger than a frame may be.
    """
    document = encode_document((FRAME_FORMAT, *_fields(frame)))
    if len(document) > DOCUMENT_BYTES_MAX:
        raise Misuse(f"a frame of {len(document)} bytes; at most {DOCUMENT_BYTES_MAX} are sent")
    return _LENGTH.pack(len(document)) + document


def decode_frame(data: bytes) -> Frame | None:
    """A frame, without its length; None for one of a kind that only a later version knows.

    Raises:
        Malformed: it is neither.
    """
    document = decode_document(data)
    if len(document) < 2 or document[0] is True or document[0] != FRAME_FORMAT:
        raise Malformed("a frame of an unknown format")
    kind = _text(document[1], KIND_CHARACTERS_MAX)
    fields = document[2:]
    match kind:
        case "hello":
            return _read_hello(fields)
        case "request":
            name, body = _take(fields, 2)
            return Request(kind=_text(name, KIND_CHARACTERS_MAX), body=_bytes(body))
        case "part":
            (body,) = _take(fields, 1)
            return Part(body=_bytes(body))
        case "end":
            return End()
        case "fault":
            (line,) = _take(fields, 1)
            return Fault(line=_one_line(line))
        case _:
            return None


class FrameReader:
    """Cuts a stream of bytes into documents, and keeps at most one that is not yet whole."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def is_within_frame(self) -> bool:
        """Whether the stream would be cut in mid-frame if it ended now."""
        return bool(self._held)

    def feed(self, data: bytes) -> None:
        """More of the stream has come."""
        self._held += data

    def next_document(self) -> bytes | None:
        """The next whole document; None while there is none.

        Raises:
            Malformed: a length that no document has. Nothing can be read after that.
        """
        if len(self._held) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._held)
        if not 0 < length <= DOCUMENT_BYTES_MAX:
            raise Malformed(f"a frame of {length} bytes; at most {DOCUMENT_BYTES_MAX} are read")
        end = _LENGTH.size + length
        if len(self._held) < end:
            return None
        document = bytes(self._held[_LENGTH.size : end])
        del self._held[:end]
        return document


def _fields(frame: Frame) -> Document:
    match frame:
        case Hello():
            return (
                "hello",
                frame.certificate,
                frame.issuer_certificate,
                frame.advertised,
                frame.seen,
                frame.agent_version,
            )
        case Request(kind=kind, body=body):
            return ("request", kind, body)
        case Part(body=body):
            return ("part", body)
        case End():
            return ("end",)
        case Fault(line=line):
            return ("fault", line[:LINE_CHARACTERS_MAX])


def _read_hello(fields: Document) -> Hello:
    certificate, issuer, advertised, seen, version = _take(fields, 5)
    return Hello(
        certificate=_certificate(certificate),
        issuer_certificate=_certificate(issuer),
        advertised=Address(_text(advertised, ADDRESS_CHARACTERS_MAX)),
        seen=Address(_text(seen, ADDRESS_CHARACTERS_MAX)),
        agent_version=_text(version, VERSION_CHARACTERS_MAX),
    )


def _take(fields: Document, count: int) -> Document:
    if len(fields) < count:
        raise Malformed("a frame that lacks a field")
    return fields[:count]


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a frame without bytes where they belong")
    return value


def _certificate(value: Value) -> bytes:
    data = _bytes(value)
    if not 0 < len(data) <= CERTIFICATE_BYTES_MAX:
        raise Malformed("a hello without a certificate")
    return data


def _text(value: Value, characters_max: int) -> str:
    if not isinstance(value, str) or len(value) > characters_max or not value.isprintable():
        raise Malformed("a frame without a text where one belongs")
    return value


def _one_line(value: Value) -> str:
    """What somebody else wrote, fit to be shown."""
    if not isinstance(value, str):
        raise Malformed("a fault without a line")
    return "".join(
        character if character.isprintable() else " " for character in value[:LINE_CHARACTERS_MAX]
    )
