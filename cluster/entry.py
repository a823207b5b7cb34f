"""How a machine becomes a node, is renewed, goes and comes back, as far as its disk is concerned.

Its own file because the agent does it while it runs and the command line while it does not, and
both must leave the same files. A node that has left keeps its key and a mark; with it the agent
starts without the cluster. It must not know gossip: nothing is sent here.
"""

import os
from pathlib import Path

from cluster.credentials import load_node, save_node, save_renewal
from cluster.durable import DurableFailed
from cluster.enrolment import NodeKeys, OpenedInvite, join, renew
from cluster.errors import PeerFault
from cluster.identity.files import IdentityUnusable, node_folder, replace_file
from cluster.ids import NodeName
from cluster.keeping import forget
from cluster.signatures import RandomBytes

LEFT = "left"
"""In the identity folder of a node that has left."""


class EntryRefused(PeerFault):
    """A machine cannot become that node; one line that says why and what to do."""


def is_node(folder: Path) -> bool:
    """Whether there is an identity folder, of whatever content."""
    return os.path.lexists(folder)


def has_left(folder: Path) -> bool:
    """Whether the node of this identity folder has left its cluster."""
    return os.path.lexists(folder / LEFT)


def mark_left(folder: Path) -> None:
    """From now on the agent starts without the cluster.

    Raises:
        IdentityUnusable: the disk refuses.
    """
    replace_file(folder / LEFT, b"left; `esnode cluster join` comes back\n")


def unmark_left(folder: Path) -> None:
    """From now on the agent starts with the cluster again.

    Raises:
        IdentityUnusable: the disk refuses.
    """
    try:
        (folder / LEFT).unlink(missing_ok=True)
    except OSError as error:
        raise IdentityUnusable(f"{folder / LEFT}: {error.strerror}") from error


def set_aside(state_folder: Path, *, now_unix_seconds: int) -> None:
    """Make room for another key on a machine whose own was withdrawn.

    Raises:
        IdentityUnusable: the disk refuses.
    """
    folder = node_folder(state_folder)
    try:
        folder.rename(folder.with_name(f"{folder.name}.withdrawn-{now_unix_seconds}"))
        forget(state_folder)
    except OSError as error:
        raise IdentityUnusable(f"{folder}: {error.strerror}") from None
    except DurableFailed as error:
        raise IdentityUnusable(str(error)) from None


def enter(
    folder: Path,
    invite: OpenedInvite,
    name: NodeName,
    *,
    now_unix_seconds: int,
    random_bytes: RandomBytes,
) -> NodeKeys:
    """Make this machine a node; one that has left comes back with its key, as one that renews.

    Raises:
        EntryRefused: it is a node already, or was another one.
        PeerFault: the invite does not hold.
        IdentityUnusable: the disk refuses, or what is there cannot be used.
    """
    if not is_node(folder):
        node = join(invite, name, now_unix_seconds=now_unix_seconds, random_bytes=random_bytes)
        save_node(folder, node)
        return node
    kept = load_node(folder)
    if not has_left(folder):
        raise EntryRefused(f"{_who(kept)} already; its keys are in {folder}")
    is_other = invite.authority.cluster_id != kept.authority.cluster_id
    if is_other or name != kept.identity.name:
        raise EntryRefused(
            f"{_who(kept)}, which it has left; to come as {name} of {invite.authority.name}, move "
            f"{folder} away first"
        )
    node = renew_here(folder, invite, now_unix_seconds=now_unix_seconds, random_bytes=random_bytes)
    unmark_left(folder)
    return node


def renew_here(
    folder: Path, invite: OpenedInvite, *, now_unix_seconds: int, random_bytes: RandomBytes
) -> NodeKeys:
    """Give this machine's key a new certificate.

    Raises:
        PeerFault: the invite does not hold, or is of another cluster, rack or name.
        IdentityUnusable: this machine is no node, or the disk refuses.
    """
    kept = load_node(folder)
    if invite.rights.racks and kept.identity.rack not in invite.rights.racks:
        raise EntryRefused(
            f"{_who(kept)} in rack {kept.identity.rack}, and the invite is to rack "
            f"{invite.rights.racks[0]}; a node moves by leaving and joining under a new key"
        )
    node = renew(kept, invite, now_unix_seconds=now_unix_seconds, random_bytes=random_bytes)
    save_renewal(folder, node)
    return node


def _who(node: NodeKeys) -> str:
    authority = node.authority
    return (
        f"this machine is {node.identity.name} of cluster {authority.name} "
        f"({authority.cluster_id.short})"
    )
