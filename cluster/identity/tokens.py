"""Invite tokens: one line of text that lets a machine into a cluster.

Its own file because the text is a promise to operators: it survives mail, chat and a terminal, and
a token that did not is recognised before anything in it is read. It must not know what the
certificates in it mean; those who open it judge them. The token holds a private key: it is printed
only by `print_token`, never by `repr`, and no error quotes it.

The text: ``esnode-invite-1.`` and, in base64url without padding: the length of the document (two
bytes), the first eight bytes of its SHA-256, the document.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field

from cluster.codec import Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import KEY_BYTES

PREFIX = "esnode-invite-1."
_FAMILY = "esnode-invite-"
_LENGTH_BYTES = 2
_DIGEST_BYTES = 8
"""Against slips, not against forgers: those cannot sign the certificate inside."""
_HEAD_BYTES = _LENGTH_BYTES + _DIGEST_BYTES
_FORMAT = 1
_KIND = "invite"
SEEDS_MAX = 16
SEED_CHARACTERS_MAX = 255
TOKEN_CHARACTERS_MAX = 16_384

_SEED = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+):([0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteToken:
    """What one token holds."""

    authority_der: bytes = field(repr=False)
    invite_der: bytes = field(repr=False)
    invite_seed: bytes = field(repr=False)
    """The invite's private key. Whoever holds it can make nodes until the invite is used up."""
    seeds: tuple[str, ...]
    """Addresses of members to knock at, as HOST:PORT."""


def print_token(token: InviteToken) -> str:
    """The one line to hand to whoever shall join."""
    document = encode_document(
        (
            _FORMAT,
            _KIND,
            token.authority_der,
            token.invite_der,
            token.invite_seed,
            tuple(parse_seed(seed) for seed in token.seeds),
        )
    )
    data = len(document).to_bytes(_LENGTH_BYTES, "big") + _digest(document) + document
    return PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


def parse_token(text: str) -> InviteToken:
    """What a token holds. Spaces and line breaks, which mail puts in, are passed over.

    Raises:
        Malformed: it is no token, or not all of one, or not as it was printed.
    """
    if len(text) > TOKEN_CHARACTERS_MAX:
        raise Malformed(f"this is longer than any invite token ({len(text)} characters)")
    written = "".join(text.split())
    if not written.startswith(PREFIX):
        raise Malformed(_not_ours(written))
    data = _decode(written.removeprefix(PREFIX))
    length = int.from_bytes(data[:_LENGTH_BYTES], "big")
    document = data[_HEAD_BYTES:]
    if len(data) < _HEAD_BYTES or len(document) < length:
        raise Malformed("the invite token is cut short; copy the whole line")
    if len(document) > length:
        raise Malformed("the invite token has something behind its end; copy only its line")
    if not hmac.compare_digest(data[_LENGTH_BYTES:_HEAD_BYTES], _digest(document)):
        raise Malformed("the invite token has a mistyped character; copy the whole line")
    return _open(decode_document(document))


def parse_seed(text: str) -> str:
    """An address as HOST:PORT, with an IPv6 address in brackets; lower case.

    Raises:
        Malformed: it is none.
    """
    written = text.strip().lower()
    match = _SEED.fullmatch(written)
    is_port = match is not None and 0 < int(match.group(2)) < 65_536
    if len(written) > SEED_CHARACTERS_MAX or not is_port:
        shown = written if len(written) <= 60 else written[:57] + "..."
        raise Malformed(f"seed {shown!r} is not HOST:PORT, e.g. gpu-01:7947")
    return written


def _not_ours(written: str) -> str:
    if written.startswith(_FAMILY):
        return "the invite token is of a format that this version does not read; update esnode"
    return f"this is no invite token; one begins with {PREFIX}"


def _decode(text: str) -> bytes:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        # One character too many or too few also ends here: no 4n + 1 characters are base64.
        if len(text) % 4 == 1:
            raise Malformed("the invite token is cut short; copy the whole line") from None
        raise Malformed("the invite token has a mistyped character; copy the whole line") from None
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != text.rstrip("="):
        # Bits of the last character that no byte uses.
        raise Malformed("the invite token has a mistyped character; copy the whole line")
    return data


def _digest(document: bytes) -> bytes:
    return hashlib.sha256(document).digest()[:_DIGEST_BYTES]


def _open(document: tuple[Value, ...]) -> InviteToken:
    match document:
        case (
            1,
            "invite",
            bytes() as authority_der,
            bytes() as invite_der,
            bytes() as invite_seed,
            tuple() as seeds,
        ) if len(invite_seed) == KEY_BYTES and len(seeds) <= SEEDS_MAX:
            return InviteToken(
                authority_der=authority_der,
                invite_der=invite_der,
                invite_seed=invite_seed,
                seeds=tuple(_seed(seed) for seed in seeds),
            )
        case _:
            raise Malformed("the invite token holds something else than an invite")


def _seed(value: Value) -> str:
    if not isinstance(value, str):
        raise Malformed("the invite token holds a seed that is no address")
    return parse_seed(value)
