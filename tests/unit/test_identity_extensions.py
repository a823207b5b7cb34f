"""The private extensions byte by byte, since they outlive every version of the program."""

import pytest

from cluster.errors import Malformed, Misuse
from cluster.identity import der
from cluster.identity.certificates import PrivateExtension
from cluster.identity.extensions import ARC, Kind, Terms, read_terms, write_terms
from cluster.identity.names import (
    lies_below,
    node_domain,
    parse_node_domain,
    parse_rack_domain,
    rack_domain,
)
from cluster.ids import POWER, WORK, NamePrefix, RackId, parse_node_name

FULL = Terms(
    kind=Kind.INVITE,
    roles=(POWER, WORK),
    name_prefix=NamePrefix("gpu-"),
    admit_until_unix_seconds=1_800_086_400,
    uses=200,
    needs_approval=True,
    may_found=True,
)
FULL_BYTES = {
    "1": "0c06696e76697465",
    "2": "0c0a706f7765722c776f726b",
    "3": "0c046770752d",
    "4": "02046b4b2380",
    "5": "020200c8",
    "6": "0101ff",
    "7": "0101ff",
}


def written(terms: Terms) -> dict[str, str]:
    return {one.oid.removeprefix(f"{ARC}."): one.value.hex() for one in write_terms(terms)}


def private(values: dict[str, str]) -> dict[str, PrivateExtension]:
    return {
        f"{ARC}.{last}": PrivateExtension(oid=f"{ARC}.{last}", value=bytes.fromhex(value))
        for last, value in values.items()
    }


def test_an_invite_s_terms_have_these_bytes() -> None:
    assert written(FULL) == FULL_BYTES


def test_terms_are_read_back_and_what_others_say_is_passed_over() -> None:
    later = {"8": "0500", "99.1": "ffff"}

    assert read_terms(private({**FULL_BYTES, **later})) == FULL


def test_what_is_at_its_default_is_not_written() -> None:
    assert written(Terms(kind=Kind.NODE)) == {"1": "0c046e6f6465"}


@pytest.mark.parametrize(
    ("values", "line"),
    [
        pytest.param({}, "a certificate that does not say what it is for", id="no-kind"),
        pytest.param(
            {"1": "0c0377687a"},
            "a certificate for something that this version does not know",
            id="unknown-kind",
        ),
        pytest.param({"1": ""}, "extension .1 is an element that is cut short", id="nothing"),
        pytest.param({"1": "0c0377"}, "extension .1 is an element that is cut short", id="torn"),
        pytest.param({"1": "0403616263"}, "extension .1 is not a text", id="no-text"),
        pytest.param({"1": "0c01ff"}, "extension .1 is a text that is not UTF-8", id="no-utf-8"),
        pytest.param(
            {"1": FULL_BYTES["1"]}, "an invite without an end", id="an-invite-without-an-end"
        ),
        pytest.param(
            {**FULL_BYTES, "2": "0c0a776f726b2c706f776572"},
            "roles that are not sorted, or empty",
            id="roles-unsorted",
        ),
        pytest.param({**FULL_BYTES, "2": "0c00"}, "roles that are not sorted, or empty", id="none"),
        pytest.param({**FULL_BYTES, "3": "0c00"}, "a name prefix that is empty", id="no-prefix"),
        pytest.param({**FULL_BYTES, "5": "020100"}, "an invite for no node at all", id="no-uses"),
        pytest.param(
            {**FULL_BYTES, "5": "0201ff"},
            "extension .5 is a number that is negative, too large or not in its shortest form",
            id="negative",
        ),
        pytest.param(
            {**FULL_BYTES, "5": "02020005"},
            "extension .5 is a number that is negative, too large or not in its shortest form",
            id="padded",
        ),
        pytest.param(
            {**FULL_BYTES, "5": "02" + "09" + "01" * 9},
            "extension .5 is a number that is negative, too large or not in its shortest form",
            id="too-large",
        ),
        pytest.param(
            {**FULL_BYTES, "5": "028101c8"},
            "extension .5 is an element whose length is not in its shortest form",
            id="long-length",
        ),
        pytest.param(
            {**FULL_BYTES, "5": "028001c8"},
            "extension .5 is an element whose length cannot be read",
            id="no-length",
        ),
        pytest.param(
            {**FULL_BYTES, "6": "010100"}, "extension .6 is a truth that is not true", id="false"
        ),
        pytest.param({**FULL_BYTES, "6": "0101ff00"}, "extension .6 is not a truth", id="more"),
        pytest.param(
            {"1": "0c046e6f6465", "5": "020101"},
            "extension .5 has no place in a certificate of node",
            id="uses-of-a-node",
        ),
        pytest.param(
            {"1": "0c06697373756572", "3": "0c046770752d"},
            "extension .3 has no place in a certificate of issuer",
            id="prefix-of-an-issuer",
        ),
    ],
)
def test_terms_that_cannot_be_are_said_in_one_line(values: dict[str, str], line: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_terms(private(values))

    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "020100"),
        (127, "02017f"),
        (128, "02020080"),
        (256, "02020100"),
        (2**31, "02050080000000"),
    ],
)
def test_numbers_have_their_shortest_form(number: int, encoded: str) -> None:
    assert der.encode_number(number).hex() == encoded
    assert der.decode_number(bytes.fromhex(encoded)) == number


def test_a_text_of_more_than_127_bytes_has_a_longer_length() -> None:
    assert der.encode_text("x" * 200)[:3].hex() == "0c81c8"
    assert der.decode_text(der.encode_text("x" * 200)) == "x" * 200


def test_what_cannot_be_written_is_a_bug_of_ours() -> None:
    with pytest.raises(Misuse):
        der.encode_number(-1)
    with pytest.raises(Misuse):
        der.encode_text("x" * 256)


def test_name_and_rack_are_one_dns_name() -> None:
    name, rack = parse_node_name("gpu-17.hall-2"), RackId("r01")

    assert rack_domain(rack) == "rack-r01.esnode.invalid"
    assert node_domain(name, rack) == "gpu-17.hall-2.rack-r01.esnode.invalid"
    assert parse_node_domain(node_domain(name, rack)) == (name, rack)
    assert parse_rack_domain(rack_domain(rack)) == rack


@pytest.mark.parametrize(
    "domain",
    [
        "",
        "esnode.invalid",
        "rack-r01.esnode.invalid",
        ".rack-r01.esnode.invalid",
        "gpu.r01.esnode.invalid",
        "gpu.rack-.esnode.invalid",
        "gpu.rack-r01.esnode.invalid.",
        "GPU.rack-r01.esnode.invalid",
        "gpu.rack-r01.esnode.example",
    ],
)
def test_what_is_no_node_s_name_is_refused(domain: str) -> None:
    with pytest.raises(Malformed):
        parse_node_domain(domain)


@pytest.mark.parametrize("domain", ["", "esnode.invalid", "r01.esnode.invalid", "rack-r01.org"])
def test_what_is_no_rack_s_name_is_refused(domain: str) -> None:
    with pytest.raises(Malformed):
        parse_rack_domain(domain)


@pytest.mark.parametrize(
    ("name", "domain", "is_below"),
    [
        ("a.example.org", "example.org", True),
        ("A.Example.ORG", "example.org", True),
        ("example.org", "example.org", True),
        ("anexample.org", "example.org", False),
        ("example.org", "a.example.org", False),
        ("a.example.org", ".example.org", True),
        ("example.org", ".example.org", False),
        ("anything", "", True),
    ],
)
def test_what_lies_below_a_domain(name: str, domain: str, is_below: bool) -> None:
    assert lies_below(name, domain) is is_below
