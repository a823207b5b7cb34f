"""Messages to bytes and back.

Its own file so that the rules of the wire have one door: positional arrays, a tag in front, fields
only ever appended and with a default, what is unknown passed over, and whatever the bytes, a value
or `DecodeError`. It must not know keys, nor what a message leads to. Layout: `docs/protocol.md`.
"""

import struct
from collections.abc import Callable, Iterable

from cluster.codec import Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.gossip.fields import (
    DecodeError,
    Fields,
    read_address,
    read_array,
    read_bytes,
    read_node_id,
    read_number,
    read_version,
    take,
)
from cluster.gossip.messages import (
    Ack,
    Application,
    Entry,
    Message,
    Nack,
    OperatorNews,
    Page,
    Ping,
    PingRequest,
    Relayed,
    StateDigest,
    Statement,
    Summary,
)
from cluster.gossip.statements import read_statement

PAYLOAD_FORMAT = 1
BUCKETS = 64
_PAGE_ENTRIES_MAX = 64


def encode_message(message: Message) -> bytes:
    """One message, as it stands in a payload."""
    return encode_document(_fields(message))


def join_messages(encoded: Iterable[bytes]) -> bytes:
    """The payload of a datagram: a count in front, then the messages.

    Written by hand, because each message has been encoded already, to be measured.
    """
    parts = list(encoded)
    return bytes((PAYLOAD_FORMAT, len(parts))) + b"".join(
        len(part).to_bytes(2, "big") + part for part in parts
    )


def decode_payload(payload: bytes) -> tuple[Message, ...]:
    """The messages of a datagram, without those whose tag is unknown here.

    Raises:
        DecodeError: whatever else the bytes are.
    """
    if len(payload) < 2 or payload[0] != PAYLOAD_FORMAT:
        raise DecodeError("a payload of an unknown format")
    messages: list[Message] = []
    offset = 2
    for _ in range(payload[1]):
        begin = offset + 2
        offset = begin + int.from_bytes(payload[offset:begin], "big")
        if offset > len(payload):
            raise DecodeError("a payload that is cut short")
        message = decode_message(payload[begin:offset])
        if message is not None:
            messages.append(message)
    if offset != len(payload):
        raise DecodeError("a payload with something behind its end")
    return tuple(messages)


def decode_message(data: bytes) -> Message | None:
    """One message; None for one that only a later version knows.

    Raises:
        DecodeError: it is neither.
    """
    try:
        document = decode_document(data)
    except DecodeError:
        raise
    except Malformed as error:
        raise DecodeError(str(error)) from None
    if not document:
        raise DecodeError("a message without a tag")
    tag = read_number(document[0])
    reader = _READERS.get(tag)
    return None if reader is None else reader(document[1:])


def _fields(message: Message) -> Fields:
    match message:
        case Ping(nonce=nonce, target=target, view_digest=digest, is_bare=is_bare):
            return (1, nonce, target, digest, is_bare)
        case Ack(nonce=nonce, view_digest=digest):
            return (2, nonce, digest)
        case PingRequest(nonce=nonce, target=target, address=address):
            return (3, nonce, target, address)
        case Nack(nonce=nonce):
            return (4, nonce)
        case Relayed(datagram=datagram):
            return (5, datagram)
        case Summary(buckets=buckets):
            return (6, struct.pack(f">{BUCKETS}Q", *buckets))
        case Page(begin=begin, end=end, entries=entries, is_reply=is_reply):
            return (7, begin, end, tuple(_write_entry(one) for one in entries), is_reply)
        case StateDigest(entries=entries):
            return (8, tuple(_write_entry(one) for one in entries))
        case OperatorNews(record=record):
            return (9, record)
        case Application(channel=channel, priority=priority, payload=payload):
            return (10, channel, priority, payload)
        case Statement(encoded=encoded):
            return (11, encoded)


def _write_entry(entry: Entry) -> Value:
    version = entry.version
    return (bytes(entry.node_id), version.epoch, version.sequence, entry.content_hash)


def _read_entry(value: Value) -> Entry:
    node_id, epoch, sequence, content_hash = take(read_array(value, 16), 4)
    return Entry(
        node_id=read_node_id(node_id),
        version=read_version(epoch, sequence),
        content_hash=read_number(content_hash),
    )


def _read_ping(fields: Fields) -> Ping:
    nonce, target, digest, is_bare = take(fields, 4, False)
    return Ping(
        nonce=read_number(nonce),
        target=read_node_id(target),
        view_digest=read_number(digest),
        is_bare=is_bare is True,
    )


def _read_ack(fields: Fields) -> Ack:
    nonce, digest = take(fields, 2)
    return Ack(nonce=read_number(nonce), view_digest=read_number(digest))


def _read_ping_request(fields: Fields) -> PingRequest:
    nonce, target, address = take(fields, 3)
    return PingRequest(
        nonce=read_number(nonce), target=read_node_id(target), address=read_address(address)
    )


def _read_nack(fields: Fields) -> Nack:
    return Nack(nonce=read_number(take(fields, 1)[0]))


def _read_relayed(fields: Fields) -> Relayed:
    return Relayed(datagram=read_bytes(take(fields, 1)[0]))


def _read_summary(fields: Fields) -> Summary:
    packed = read_bytes(take(fields, 1)[0])
    if len(packed) != 8 * BUCKETS:
        raise DecodeError("a summary of another size")
    return Summary(buckets=struct.unpack(f">{BUCKETS}Q", packed))


def _read_page(fields: Fields) -> Page:
    begin, end, entries, is_reply = take(fields, 4, False)
    return Page(
        begin=read_node_id(begin),
        end=read_node_id(end),
        entries=tuple(_read_entry(one) for one in read_array(entries, _PAGE_ENTRIES_MAX)),
        is_reply=is_reply is True,
    )


def _read_state_digest(fields: Fields) -> StateDigest:
    entries = read_array(take(fields, 1)[0], _PAGE_ENTRIES_MAX)
    return StateDigest(entries=tuple(_read_entry(one) for one in entries))


def _read_operator_news(fields: Fields) -> OperatorNews:
    return OperatorNews(record=read_bytes(take(fields, 1)[0]))


def _read_application(fields: Fields) -> Application:
    channel, priority, payload = take(fields, 3)
    return Application(
        channel=read_number(channel), priority=read_number(priority), payload=read_bytes(payload)
    )


def _read_statement(fields: Fields) -> Statement | None:
    return read_statement(read_bytes(take(fields, 1)[0]))


_READERS: dict[int, Callable[[Fields], Message | None]] = {
    1: _read_ping,
    2: _read_ack,
    3: _read_ping_request,
    4: _read_nack,
    5: _read_relayed,
    6: _read_summary,
    7: _read_page,
    8: _read_state_digest,
    9: _read_operator_news,
    10: _read_application,
    11: _read_statement,
}
