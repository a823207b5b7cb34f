"""Which node is meant: names, ids and the beginnings of ids, looked up in the status document.

Its own file because many commands take a NODE. What is ambiguous is never guessed at. It must not
know what will be done to the node.
"""

import re
from typing import TYPE_CHECKING, Any, NoReturn

from esnode.cli.cluster_text import find, printable
from esnode.cli.context import EXIT_USAGE, fail

if TYPE_CHECKING:
    from cluster.ids import NodeId

PREFIX_DIGITS_MIN = 6
_ID_DIGITS = 32
_LISTED_MAX = 6


def named_nodes(status: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """All nodes of a name; several where a machine was reimaged."""
    return [node for node in status["nodes"] if node["name"] == name]


def find_node(
    status: dict[str, Any], text: str, *, allows_unknown: bool = False, hint: str = ""
) -> dict[str, Any]:
    """The one node that is meant; ends in one line where there is none, or more than one."""
    found = named_nodes(status, text)
    written = text.strip().lower()
    is_id = re.fullmatch(r"[0-9a-f]+", written) is not None
    if not found and is_id and len(written) >= PREFIX_DIGITS_MIN:
        found = [node for node in status["nodes"] if str(node["id"]).startswith(written)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "; ".join(_described(node) for node in found[:_LISTED_MAX])
        more = f"; and {len(found) - _LISTED_MAX} more" if len(found) > _LISTED_MAX else ""
        fail(f"{printable(text)!r} is ambiguous, say the id: {listed}{more}", code=EXIT_USAGE)
    if not (allows_unknown and is_id and len(written) == _ID_DIGITS):
        _unknown(text, hint, is_short=is_id and len(written) < PREFIX_DIGITS_MIN)
    return {"id": written, "name": written, "rack": None, "state": "unknown"}


def _unknown(text: str, hint: str, *, is_short: bool) -> NoReturn:
    of_id = f" (of an id, at least {PREFIX_DIGITS_MIN} digits)" if is_short else ""
    lists = hint or "`esnode cluster members` lists them"
    fail(f"no node {printable(text)!r}{of_id}; {lists}", code=EXIT_USAGE)


def node_id_of(node: dict[str, Any]) -> "NodeId":
    """The node's id as records hold it.

    Raises:
        Malformed: the agent said something else.
    """
    from cluster.ids import NodeId

    return NodeId.parse(str(node["id"]))


def serial_of(node: dict[str, Any]) -> int:
    """The serial of the node's certificate."""
    text = find(node, "certificate", "serial")
    if not isinstance(text, str):
        fail(f"the agent does not know the certificate of {node['name']} yet", code=EXIT_USAGE)
    return parse_serial(text)


def invite_serial_of(node: dict[str, Any]) -> int:
    """The serial of the invite that the node came by."""
    text = find(node, "certificate", "invite")
    if not isinstance(text, str):
        fail(
            f"by which invite did {node['name']} come? `esnode cluster join` printed it there: "
            "--invite SERIAL",
            code=EXIT_USAGE,
        )
    return parse_serial(text)


def parse_serial(text: str) -> int:
    """A certificate's serial as people write it: hexadecimal, perhaps with colons as openssl's."""
    digits = text.strip().lower().removeprefix("0x").replace(":", "")
    if not re.fullmatch(r"[0-9a-f]{1,40}", digits) or int(digits, 16) == 0:
        fail(f"{printable(text)!r} is no serial: hexadecimal digits, as `esnode cluster "
             "show-certificate` prints them", code=EXIT_USAGE)  # fmt: skip
    return int(digits, 16)


def _described(node: dict[str, Any]) -> str:
    return f"{node['id']} {printable(node['name'])} {node['state']} in {node['rack']}"
