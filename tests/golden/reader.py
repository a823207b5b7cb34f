"""A second reader of the wire, made from `docs/protocol.md`.

Struct, msgpack and Ed25519 are all that it uses. Nothing of this project is imported here, so that
the document and the code are held against each other. Every signature is checked; what comes out
are plain values.
"""

import struct
from typing import Any

import msgpack
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Plain = tuple[Any, ...]


def read_array(data: bytes) -> Plain:
    value = msgpack.unpackb(data, raw=False, use_list=False)
    assert isinstance(value, tuple)
    assert msgpack.packb(value, use_bin_type=True) == data, "not in the shortest form"
    return value


def read_payload(payload: bytes) -> Plain:
    assert payload[0] == 1
    messages, at = [], 2
    for _ in range(payload[1]):
        (length,) = struct.unpack_from(">H", payload, at)
        messages.append(read_array(payload[at + 2 : at + 2 + length]))
        at += 2 + length
    assert at == len(payload)
    return tuple(messages)


def read_datagram(data: bytes, public_key: bytes) -> Plain:
    assert len(data) <= 1400
    form, cluster, sender, epoch, number = struct.unpack_from(">B16s16sQQ", data)
    payload = data[49:]
    if form == 0xE1:
        payload = data[49:-64]
        check_signature(public_key, data[-64:], b"esnode datagram 1\0" + data[:-64])
    return (form, cluster, sender, epoch, number, read_payload(payload))


def read_statement(data: bytes, cluster: bytes, public_key: bytes) -> Plain:
    assert len(data) <= 1100
    kind, node_id, epoch, sequence = struct.unpack_from(">B16sQQ", data)
    check_signature(public_key, data[-64:], b"esnode statement 1\0" + cluster + data[:-64])
    return (kind, node_id, epoch, sequence, read_array(data[33:-64]))


def read_frame(data: bytes) -> Plain:
    (length,) = struct.unpack_from(">I", data)
    assert length == len(data) - 4 <= 65_536
    return read_array(data[4:])


def read_paper(data: bytes, public_keys: dict[str, bytes]) -> Plain:
    paper = read_array(data)
    purpose = {
        "admission": b"esnode admission 1\0",
        "operator-record": b"esnode operator-record 1\0",
    }
    kind = paper[1]
    if kind in purpose:
        check_signature(public_keys[kind], paper[3], purpose[kind] + paper[2])
        assert read_array(paper[2])[:2] == (1, kind)
    return paper


def check_signature(public_key: bytes, signature: bytes, message: bytes) -> None:
    Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
