"""The fields of an array from the wire, each read as what it must be.

Its own file because messages and statements are both such arrays. Whatever the value, out comes one
of the right kind or `DecodeError`. It must not know any message.
"""

from collections.abc import Sequence

from cluster.codec import Value, decode_document
from cluster.errors import Malformed
from cluster.gossip.messages import Address, Version
from cluster.ids import KEY_ID_BYTES, NodeId

U64_MAX = 2**64 - 1
ADDRESS_CHARACTERS_MAX = 262
"""The longest DNS name, brackets, a colon and a port."""

Fields = Sequence[Value]


class DecodeError(Malformed):
    """These bytes are no message of ours."""


def read_body(body: bytes, count: int) -> Fields:
    """The first fields of a body."""
    try:
        return take(decode_document(body), count)
    except DecodeError:
        raise
    except Malformed as error:
        raise DecodeError(str(error)) from None


def take(fields: Fields, count: int, *defaults: Value) -> Fields:
    """So many fields; what follows is of a later version, what is missing has its default."""
    missing = max(0, count - len(fields))
    if missing > len(defaults):
        raise DecodeError(f"{len(fields)} fields where {count} are needed")
    return (*fields[:count], *defaults[len(defaults) - missing :])


def read_number(value: Value) -> int:
    """A whole number of 64 bits, without a sign."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= U64_MAX:
        raise DecodeError("not a number of 64 bits")
    return value


def read_bytes(value: Value) -> bytes:
    """Bytes."""
    if not isinstance(value, bytes):
        raise DecodeError("not bytes")
    return value


def read_text(value: Value) -> str:
    """A text."""
    if not isinstance(value, str):
        raise DecodeError("not a text")
    return value


def read_array(value: Value, count_max: int) -> Fields:
    """An array of bounded length."""
    if not isinstance(value, tuple) or len(value) > count_max:
        raise DecodeError(f"not an array of at most {count_max}")
    return value


def read_address(value: Value) -> Address:
    """HOST:PORT; whether it leads anywhere shows when it is used."""
    text = read_text(value)
    if not text or len(text) > ADDRESS_CHARACTERS_MAX:
        raise DecodeError("not an address")
    return Address(text)


def read_node_id(value: Value) -> NodeId:
    """A node id."""
    if not isinstance(value, bytes) or len(value) != KEY_ID_BYTES:
        raise DecodeError("not a node id")
    return NodeId(value)


def read_version(epoch: Value, sequence: Value) -> Version:
    """A version, of its two numbers."""
    return Version(epoch=read_number(epoch), sequence=read_number(sequence))
