"""What makes this machine a node: an order to the running agent, or files for a stopped one.

Its own file because `init`, `join` and `renew` share it. Both ways give the same answer, so that
nobody has to care which it was. It must not know where tokens come from.
"""

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esnode.cli.cluster_places import now_unix_seconds, random_bytes
from esnode.cli.cluster_text import utc_time
from esnode.cli.context import EXIT_USAGE, fail

if TYPE_CHECKING:
    from cluster.enrolment import NodeKeys
    from cluster.identity.tokens import InviteToken
    from cluster.ids import NodeName
    from esnode.client import Door

JOIN_SCHEMA = "esnode.cluster_join/"
ORDER_SECONDS = 30.0
"""An agent that joins, leaves or renews first talks to others."""


def default_node_name(given: str | None) -> "NodeName":
    """The name that was given, else the one of this machine, made into one.

    Raises:
        Malformed: what was given is no name.
    """
    from cluster.errors import Malformed
    from cluster.ids import parse_node_name

    if given is not None:
        return parse_node_name(given)
    host = socket.gethostname()
    labels = (
        "".join(c if c in "abcdefghijklmnopqrstuvwxyz0123456789-" else "-" for c in label).strip(
            "-"
        )
        for label in host.lower().split(".")
    )
    name = ".".join(label for label in labels if label)
    try:
        parsed = parse_node_name(name)
    except Malformed:
        parsed = None
    if parsed is None or parsed.partition(".")[0] == "localhost":
        fail(f"this machine's name, {host!r}, is none for a node; say --name NODE", code=EXIT_USAGE)
    return parsed


def order_join(door: "Door", token: "InviteToken", name: "NodeName") -> dict[str, Any]:
    """Let the running agent join.

    Raises:
        AgentStopped: none runs.
        AgentUnreachable, AgentRefused: it did not say that it has.
    """
    from cluster.identity.tokens import print_token
    from esnode.client import ask

    return ask(
        door,
        "/v1/control/cluster/join",
        schema=JOIN_SCHEMA,
        order={"token": print_token(token), "name": name},
        timeout_seconds=ORDER_SECONDS,
    )


def order_rejoin(door: "Door") -> dict[str, Any]:
    """Let the running agent come back under the identity that it kept.

    Raises:
        AgentStopped, AgentUnreachable, AgentRefused: as `order_join`.
    """
    from esnode.client import ask

    return ask(
        door,
        "/v1/control/cluster/rejoin",
        schema=JOIN_SCHEMA,
        order={},
        timeout_seconds=ORDER_SECONDS,
    )


def save_stopped_node(folder: Path, token: "InviteToken", name: "NodeName") -> dict[str, Any]:
    """Make this machine a node whose agent joins at its next start.

    Raises:
        PeerFault: the token does not hold, or this machine is a node already.
        IdentityUnusable: the disk refuses, or what is there cannot be used.
    """
    from cluster.enrolment import open_invite
    from cluster.entry import enter

    node = enter(
        folder,
        open_invite(token),
        name,
        now_unix_seconds=now_unix_seconds(),
        random_bytes=random_bytes,
    )
    return joined_document(node)


def save_stopped_return(folder: Path) -> dict[str, Any]:
    """Let a node that has left come back at its agent's next start.

    Raises:
        IdentityUnusable: it cannot be read, or the disk refuses.
    """
    from cluster.credentials import load_node
    from cluster.entry import has_left, is_node, unmark_left

    if not is_node(folder):
        fail("this machine has left no cluster; join needs a TOKEN", code=EXIT_USAGE)
    node = load_node(folder)
    if not has_left(folder):
        fail(_already(node, folder), code=EXIT_USAGE)
    unmark_left(folder)
    return joined_document(node)


def renew_stopped_node(folder: Path, token: "InviteToken") -> dict[str, Any]:
    """Give the node of a stopped agent a new certificate.

    Raises:
        PeerFault: the token does not hold.
        IdentityUnusable: it cannot be read, or the disk refuses.
    """
    from cluster.enrolment import open_invite
    from cluster.entry import is_node, renew_here

    if not is_node(folder):
        fail("this machine is in no cluster; `esnode cluster join` with the token", code=EXIT_USAGE)
    node = renew_here(
        folder,
        open_invite(token),
        now_unix_seconds=now_unix_seconds(),
        random_bytes=random_bytes,
    )
    return {
        "schema": "esnode.cluster_renew/1",
        "ends_at": utc_time(node.identity.window.end_unix_seconds),
        "node": {"id": str(node.identity.node_id), "name": node.identity.name},
        "admitted": False,
        "detail": "no agent runs here: it shows the certificate when it starts",
    }


def kept_name(folder: Path) -> str | None:
    """The name under which this machine has left, if it has.

    Raises:
        IdentityUnusable: it cannot be read.
    """
    from cluster.credentials import load_node
    from cluster.entry import has_left

    return load_node(folder).identity.name if has_left(folder) else None


def check_no_node(folder: Path) -> None:
    """Say so where this machine is a node already.

    Raises:
        IdentityUnusable: it may be one; what is there cannot be used.
    """
    from cluster.credentials import load_node
    from cluster.entry import is_node
    from cluster.identity.files import IdentityUnusable

    if not is_node(folder):
        return
    try:
        node = load_node(folder)
    except IdentityUnusable as error:
        line = f"this machine may be a node already, but {error}"
        raise IdentityUnusable(line) from error.__context__
    fail(_already(node, folder), code=EXIT_USAGE)


def joined_document(node: "NodeKeys") -> dict[str, Any]:
    """What a stopped agent would have answered."""
    identity = node.identity
    return {
        "schema": "esnode.cluster_join/1",
        "cluster": {"id": str(node.authority.cluster_id), "name": node.authority.name},
        "node": {"id": str(identity.node_id), "name": identity.name, "rack": identity.rack},
        "admitted": False,
        "detail": "no agent runs here: it joins when it starts",
    }


def waiting_line(token: "InviteToken", joined: dict[str, Any]) -> str | None:
    """What an operator has to do for a node whose invite waits for approval."""
    from cluster.enrolment import open_invite

    rights = open_invite(token).rights
    if not rights.terms.needs_approval or joined["admitted"]:
        return None
    return (
        "it waits for an operator: `esnode cluster approve "
        f"{joined['node']['id']} --invite {rights.serial:x}`"
    )


def _already(node: "NodeKeys", folder: Path) -> str:
    from cluster.entry import has_left

    left = ", which it has left: `esnode cluster join` returns" if has_left(folder) else " already"
    return (
        f"this machine is {node.identity.name} of cluster {node.authority.name} "
        f"({node.authority.cluster_id.short}){left}; its keys are in {folder}"
    )
