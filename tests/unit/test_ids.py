"""Names and ids: what is one, how it is written, and the line about what is none."""

import pytest

from cluster.errors import Malformed, Misuse
from cluster.ids import (
    ClusterId,
    NodeId,
    OperatorId,
    parse_cluster_name,
    parse_name_prefix,
    parse_node_name,
    parse_rack,
    parse_roles,
)

PUBLIC_KEY = bytes(range(32))
WRITTEN = "630dcd2966c4336691125448bbb25b4f"
"""Of `printf '\\000\\001...\\037' | sha256sum`, the first half."""


def test_a_node_id_is_the_first_half_of_the_hash_of_its_key() -> None:
    node_id = NodeId.of_public_key(PUBLIC_KEY)

    assert str(node_id) == WRITTEN
    assert node_id.short == "630dcd29"
    assert repr(node_id) == "NodeId(630dcd29...)"


def test_an_id_is_read_back_from_what_was_written() -> None:
    assert NodeId.parse(f" {WRITTEN.upper()} ") == NodeId.of_public_key(PUBLIC_KEY)
    assert NodeId.from_wire(bytes.fromhex(WRITTEN)) == NodeId.of_public_key(PUBLIC_KEY)


def test_ids_are_ordered_as_they_are_written() -> None:
    ids = [NodeId(bytes([number]) * 16) for number in (200, 3, 90)]

    assert [one.short for one in sorted(ids)] == ["03030303", "5a5a5a5a", "c8c8c8c8"]


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        pytest.param(
            NodeId, "630dcd29", "'630dcd29' is not a node id: 32 hexadecimal digits", id="short"
        ),
        pytest.param(
            ClusterId, "x" * 32, f"'{'x' * 32}' is not a cluster id: 32 hexadecimal digits", id="x"
        ),
        pytest.param(OperatorId, "", "'' is not an operator id: 32 hexadecimal digits", id="empty"),
    ],
)
def test_what_is_no_id_is_said_in_one_line(kind: type[NodeId], text: str, line: str) -> None:
    with pytest.raises(Malformed) as caught:
        kind.parse(text)

    assert str(caught.value) == line


@pytest.mark.parametrize("value", [b"", b"x" * 15, b"x" * 17, "x" * 16, None, 7])
def test_what_a_peer_sends_as_an_id_is_checked(value: object) -> None:
    with pytest.raises(Malformed):
        NodeId.from_wire(value)


def test_an_id_of_a_wrong_length_is_a_bug_of_ours() -> None:
    with pytest.raises(Misuse):
        NodeId(b"short")
    with pytest.raises(Misuse):
        NodeId.of_public_key(b"short")


@pytest.mark.parametrize("name", ["gpu-17", "a", "7", "gpu-17.hall-2.example", "x" * 63])
def test_a_node_name_is_labels_as_in_dns(name: str) -> None:
    assert parse_node_name(name) == name


@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param("", "node name is empty", id="empty"),
        pytest.param(
            "GPU-17",
            "node name 'GPU-17' must be lower case: 'gpu-17', joined by dots",
            id="upper",
        ),
        pytest.param(
            "gpu_17",
            "node name 'gpu_17' must be letters a-z, digits and inner hyphens, joined by dots",
            id="underscore",
        ),
        pytest.param(
            "gpu..17",
            "node name 'gpu..17' must be letters a-z, digits and inner hyphens, joined by dots",
            id="two-dots",
        ),
        pytest.param(
            "x" * 64,
            f"node name '{'x' * 37}...' is longer than 63 characters",
            id="long",
        ),
        pytest.param(
            "a\nb",
            "node name 'a\\nb' must be letters a-z, digits and inner hyphens, joined by dots",
            id="line-break",
        ),
    ],
)
def test_what_is_no_node_name_is_said_in_one_line(name: str, line: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_node_name(name)

    assert str(caught.value) == line


@pytest.mark.parametrize("text", ["-a", "a-", "a.b", "ä", "a b", "r" * 33, "r01\n", ""])
def test_a_rack_and_a_cluster_are_one_label(text: str) -> None:
    for parse in (parse_rack, parse_cluster_name):
        with pytest.raises(Malformed):
            parse(text)


@pytest.mark.parametrize("prefix", ["", "gpu", "gpu-", "gpu-17.", "hall-2.gpu-"])
def test_a_prefix_is_how_a_name_may_begin(prefix: str) -> None:
    assert parse_name_prefix(prefix) == prefix
    assert parse_node_name(f"{prefix}x").startswith(prefix)


@pytest.mark.parametrize("prefix", ["-", ".", "a..", "a.-", "a-.b", "A", "x" * 63])
def test_a_prefix_with_which_no_name_begins_is_refused(prefix: str) -> None:
    with pytest.raises(Malformed):
        parse_name_prefix(prefix)


def test_roles_are_sorted_and_kept_even_where_unknown() -> None:
    assert parse_roles("work, power,work,later-role") == ("later-role", "power", "work")
    assert parse_roles("") == ()


@pytest.mark.parametrize(
    "text", ["a,,b", "Power", "7a", "a" * 25, ",".join(f"role-{n}" for n in range(9))]
)
def test_what_is_no_list_of_roles_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_roles(text)
