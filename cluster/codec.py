"""Documents to bytes and back. The only importer of msgpack.

Its own file so that the wire has one door. What is signed must have one encoding only: a document
is an array of whole numbers, byte strings, texts, truths, `None` and further arrays, in a fixed
order, its format version first. No maps (their order is free), no floats (their text differs), no
extension types. Bytes that are not the one encoding of what they decode to are refused. It must
not know what any document means.
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgpack

from cluster.errors import Malformed, Misuse

Value: TypeAlias = "int | bytes | str | bool | tuple[Value, ...] | None"
Document: TypeAlias = tuple[Value, ...]

DOCUMENT_BYTES_MAX = 64 * 1024
"""More than any document that is signed; a bound on what a stranger can make us decode."""
_DEPTH_MAX = 4
_ITEMS_MAX = 1024
_PLAIN = frozenset((int, bytes, str, bool, type(None)))
"""Most of what documents hold; asked first, since every message passes here twice."""


def encode_document(document: Sequence[Value]) -> bytes:
    """The one encoding of this document.

    Raises:
        Misuse: it holds something that has no single encoding.
    """
    _check(tuple(document), depth=0)
    try:
        encoded: bytes = msgpack.packb(document, use_bin_type=True)
    except (ValueError, OverflowError) as error:
        raise Misuse(f"this document has no encoding: {error}") from None
    return encoded


def decode_document(data: bytes) -> Document:
    """The document that these bytes are the encoding of.

    Raises:
        Malformed: they are not, or not its only one.
    """
    if len(data) > DOCUMENT_BYTES_MAX:
        raise Malformed(f"a document of {len(data)} bytes; at most {DOCUMENT_BYTES_MAX} are read")
    try:
        decoded: object = msgpack.unpackb(
            data,
            raw=False,
            use_list=False,
            max_str_len=DOCUMENT_BYTES_MAX,
            max_bin_len=DOCUMENT_BYTES_MAX,
            max_array_len=_ITEMS_MAX,
            max_map_len=0,
            max_ext_len=0,
        )
    except (ValueError, RecursionError):
        # Every error of msgpack's decoder is a ValueError.
        raise Malformed("a document that is not msgpack") from None
    if not isinstance(decoded, tuple):
        raise Malformed("a document that is not an array")
    try:
        again = encode_document(decoded)
    except Misuse as error:
        raise Malformed(str(error)) from None
    if again != data:
        raise Malformed("a document that is not in its one encoding")
    return decoded


def _check(document: tuple[object, ...], *, depth: int) -> None:
    if depth >= _DEPTH_MAX and document:
        raise Misuse("this document has no encoding: arrays lie too deep")
    for item in document:
        kind = type(item)
        if kind in _PLAIN:
            continue
        if isinstance(item, tuple):
            _check(item, depth=depth + 1)
        elif not isinstance(item, int | bytes | str):
            raise Misuse(f"this document has no encoding: it holds a {kind.__name__}")
