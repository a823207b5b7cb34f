"""Invite tokens: printed, mailed, mangled, and read again."""

import base64
import hashlib
import string
from dataclasses import replace
from typing import Any

import pytest

from cluster.codec import encode_document
from cluster.enrolment import InviteWish, issue_invite, open_invite
from cluster.errors import Malformed, PeerFault
from cluster.identity.tokens import InviteToken, parse_seed, parse_token, print_token
from tests.identities import DAY, NOW, R01, Lab


def new_token(lab: Lab | None = None, **wish: object) -> InviteToken:
    lab = lab or Lab()
    return issue_invite(
        lab.keys,
        InviteWish(rack=R01, ttl_seconds=DAY, **wish),
        seeds=("gpu-01:7947", "[fe80::1]:7947"),
        now_unix_seconds=NOW,
        random_bytes=lab.random_bytes,
    )


def test_a_token_is_one_line_that_reads_back() -> None:
    token = new_token()

    text = print_token(token)

    assert text.startswith("esnode-invite-1.")
    assert text.isascii()
    assert len(text.split()) == 1
    assert len(text) < 2000
    assert parse_token(text) == token


def test_what_mail_does_to_a_token_does_no_harm() -> None:
    text = print_token(new_token())
    mailed = "\r\n  ".join(text[at : at + 72] for at in range(0, len(text), 72))

    assert parse_token(f"\n{mailed}\n") == new_token()


def test_a_token_never_shows_its_key() -> None:
    token = new_token()

    assert repr(token) == "InviteToken(seeds=('gpu-01:7947', '[fe80::1]:7947'))"
    assert token.invite_seed.hex() not in repr(open_invite(token))


TEXT = print_token(new_token())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("", "this is no invite token; one begins with esnode-invite-1.", id="nothing"),
        pytest.param(
            "hello", "this is no invite token; one begins with esnode-invite-1.", id="a-word"
        ),
        pytest.param(
            TEXT.replace("-1.", "-2."),
            "the invite token is of a format that this version does not read; update esnode",
            id="a-later-format",
        ),
        pytest.param(
            "esnode-invite-1.", "the invite token is cut short; copy the whole line", id="no-body"
        ),
        pytest.param(
            TEXT[:-1], "the invite token is cut short; copy the whole line", id="one-less"
        ),
        pytest.param(TEXT[:700], "the invite token is cut short; copy the whole line", id="half"),
        pytest.param(
            TEXT[:-300] + TEXT[-299:],
            "the invite token is cut short; copy the whole line",
            id="one-less-inside",
        ),
        pytest.param(
            TEXT[:200] + ("A" if TEXT[200] != "A" else "B") + TEXT[201:],
            "the invite token has a mistyped character; copy the whole line",
            id="one-other",
        ),
        pytest.param(
            TEXT[:200] + "!" + TEXT[201:],
            "the invite token has a mistyped character; copy the whole line",
            id="one-that-cannot-be",
        ),
        pytest.param(
            TEXT + "AAAA",
            "the invite token has something behind its end; copy only its line",
            id="more-behind",
        ),
        pytest.param(
            TEXT * 20,
            f"this is longer than any invite token ({20 * len(TEXT)} characters)",
            id="far-too-long",
        ),
    ],
)
def test_a_token_that_did_not_arrive_whole_is_said_in_one_line(text: str, line: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_token(text)

    assert str(caught.value) == line


@pytest.mark.parametrize("seed", ["a:1", "ab:1", "abc:1"])
def test_the_last_character_counts_even_where_no_byte_needs_all_of_it(seed: str) -> None:
    text = print_token(replace(new_token(), seeds=(seed,)))
    others = set(string.ascii_letters + string.digits + "-_") - {text[-1]}

    for other in sorted(others):
        with pytest.raises(Malformed):
            parse_token(text[:-1] + other)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param((2, "invite", b"a", b"i", b"s" * 32, ()), id="another-format"),
        pytest.param((1, "other", b"a", b"i", b"s" * 32, ()), id="another-kind"),
        pytest.param((1, "invite", b"a", b"i", b"s" * 31, ()), id="a-short-key"),
        pytest.param((1, "invite", b"a", b"i", b"s" * 32, (7,)), id="a-number-for-a-seed"),
        pytest.param((1, "invite", b"a", b"i", b"s" * 32, ("a:1",) * 17), id="too-many-seeds"),
        pytest.param((1, "invite", b"a", b"i"), id="too-little"),
    ],
)
def test_a_token_that_holds_something_else_is_refused(document: tuple[Any, ...]) -> None:
    data = encode_document(document)
    head = len(data).to_bytes(2, "big") + hashlib.sha256(data).digest()[:8]
    text = "esnode-invite-1." + base64.urlsafe_b64encode(head + data).decode().rstrip("=")

    with pytest.raises(Malformed, match="the invite token holds"):
        parse_token(text)


def test_a_token_with_another_key_than_its_invite_s_is_refused() -> None:
    lab = Lab()
    token, other = new_token(lab), new_token(lab)
    mixed = InviteToken(
        authority_der=token.authority_der,
        invite_der=token.invite_der,
        invite_seed=other.invite_seed,
        seeds=(),
    )

    with pytest.raises(PeerFault, match="key is not that of its invite"):
        open_invite(mixed)


def test_a_token_of_two_clusters_is_refused() -> None:
    token, other = new_token(Lab()), new_token(Lab(seed=2))
    mixed = InviteToken(
        authority_der=token.authority_der,
        invite_der=other.invite_der,
        invite_seed=other.invite_seed,
        seeds=(),
    )

    with pytest.raises(PeerFault, match="comes from another cluster"):
        open_invite(mixed)


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        pytest.param("GPU-01:7947", "gpu-01:7947", id="a-name"),
        pytest.param(" 10.0.0.1:1 ", "10.0.0.1:1", id="an-address"),
        pytest.param("[FE80::1]:65535", "[fe80::1]:65535", id="ipv6"),
    ],
)
def test_a_seed_is_a_host_and_a_port(text: str, seed: str) -> None:
    assert parse_seed(text) == seed


@pytest.mark.parametrize(
    "text", ["", "gpu-01", "gpu-01:", ":7947", "gpu-01:0", "gpu-01:65536", "fe80::1:7947", "a b:1"]
)
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="is not HOST:PORT"):
        parse_seed(text)
