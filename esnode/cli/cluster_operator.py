"""`esnode cluster approve`, `remove`, `forget` and `revoke`: an operator's word about nodes.

Its own file because they share one course: find the node that is meant, ask, sign, hand over. What
is said cannot be unsaid, so the node is named with its id before anybody is asked. How a record is
made is `cluster_records`' business.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from esnode.cli.cluster_nodes import (
    find_node,
    invite_serial_of,
    named_nodes,
    node_id_of,
    parse_serial,
    serial_of,
)
from esnode.cli.cluster_places import (
    ask_first,
    control_door,
    load_operator_folder,
    note,
    now_unix_seconds,
    reading_what,
    tells_errors_in_one_line,
    with_operator_folder,
    with_socket,
    with_yes,
)
from esnode.cli.context import EXIT_USAGE, fail

if TYPE_CHECKING:
    from cluster.credentials import OperatorFolder
    from cluster.identity.operator_records import Statement
    from esnode.client import Door

Command = TypeVar("Command", bound=Callable[..., Any])


def with_orders(command: Command) -> Command:
    """The options of every command that signs a record."""
    json_option = click.option(
        "--json", "as_json", is_flag=True, help="As JSON (esnode.operator_record/1)."
    )
    return json_option(with_socket(with_operator_folder(command)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """An operator's keys, and the agent that takes their word to the others."""

    door: "Door"
    path: Path
    folder: "OperatorFolder"

    def status(self) -> dict[str, Any]:
        """The cluster as the agent sees it, which is the one that the keys are of."""
        from esnode.cli.cluster_records import check_cluster
        from esnode.client import ask

        document = ask(self.door, "/v1/cluster", schema="esnode.cluster_status/")
        with reading_what(self.door.shown):
            check_cluster(document, self.folder.authority, self.path)
            # What a node is found by and told as.
            _ = [(one["id"], one["name"], one["rack"], one["state"]) for one in document["nodes"]]
        return document

    def is_operator_serial(self, serial: int) -> bool:
        """Whether this is the certificate of an operator, which only the authority revokes."""
        from esnode.cli.cluster_records import fetch_log, read_said

        said = read_said(fetch_log(self.door), self.folder.authority)
        return any(one.serial == serial for one in said.log.operators.values())

    def say(self, statement: "Statement", *, by_authority: bool = False) -> list[str]:
        """Sign it as the next record and hand it over."""
        from esnode.cli.cluster_records import fetch_log, next_records, post_records, read_said

        said = read_said(fetch_log(self.door), self.folder.authority)
        for fork in said.log.forks:
            note(f"note: {fork.line}")
        if said.waiting:
            note(f"note: {said.waiting} records wait for one before them, which this agent lacks")
        records = next_records(
            said,
            self.folder,
            statement,
            by_authority=by_authority,
            now_unix_seconds=now_unix_seconds(),
        )
        return post_records(self.door, records)


def speaker(
    ctx: click.Context,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> Speaker:
    """Who speaks, and to which agent."""
    path, folder = load_operator_folder(operator_dir, cluster_name)
    return Speaker(door=control_door(ctx, socket_path), path=path, folder=folder)


def tell(lines: list[str], *, as_json: bool) -> None:
    """What was said, as the agent put it."""
    for line in lines[:-1]:
        note(line)
    if as_json:
        document = {"schema": "esnode.operator_record/1", "accepted": True, "line": lines[-1]}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(lines[-1])


@click.command()
@click.argument("node")
@click.option("--invite", "invite", metavar="SERIAL", help="The invite that it came by.")
@with_orders
@click.pass_context
@tells_errors_in_one_line
def approve(
    ctx: click.Context,
    node: str,
    invite: str | None,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """Let in a node that waits for an operator's word.

    NODE is a name, an id, or the first six digits of an id or more. A node whom no member has met
    yet is named by its whole id and its invite, as `esnode cluster join` printed them there.

    \b
    esnode cluster approve gpu-17
    esnode cluster approve 92f6b536450003e0529e37d86d9e69a6 --invite 1ac2817b7b6112c8
    """
    from cluster.identity.operator_records import NodeApproved

    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    found = find_node(
        speaks.status(),
        node,
        allows_unknown=invite is not None,
        hint="one that waits is named as `esnode cluster status` shows it: ID --invite SERIAL",
    )
    serial = parse_serial(invite) if invite is not None else invite_serial_of(found)
    statement = NodeApproved(node_id=node_id_of(found), invite_serial=serial)
    tell(speaks.say(statement), as_json=as_json)


@click.command()
@click.argument("node")
@with_orders
@with_yes
@click.pass_context
@tells_errors_in_one_line
def remove(
    ctx: click.Context,
    node: str,
    is_sure: bool,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """Retire a node that is gone; with a new invite it may return.

    For machines that failed and will not come back, or that left. The key stays good: a new
    certificate brings the node back. For a key that may be known to others see `revoke`.

    \b
    esnode cluster remove gpu-09
    esnode cluster remove 92f6b536 --yes
    """
    from cluster.identity.operator_records import NodeRemoved

    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    found = find_node(speaks.status(), node)
    statement = NodeRemoved(node_id=node_id_of(found), serial=serial_of(found))
    works = ", and it works: leave on it would be the way," if _works(found) else ""
    question = f"{_shown(found)} is {found['state']}{works} remove it for good?"
    ask_first(question, is_sure=is_sure)
    tell(speaks.say(statement), as_json=as_json)


@click.command()
@click.argument("name")
@click.option("--id", "old_id", metavar="ID", help="Whose name it was, when several keys have it.")
@with_orders
@with_yes
@click.pass_context
@tells_errors_in_one_line
def forget(
    ctx: click.Context,
    name: str,
    old_id: str | None,
    is_sure: bool,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """Free the name of a machine that was reimaged.

    Reimaged, a machine makes a new key, and two keys go by its name. Afterwards the name means the
    new one alone. Without --id it is taken from the one key of that name that does not answer.

    \b
    esnode cluster forget gpu-05
    esnode cluster forget gpu-05 --id 92f6b536 --yes
    """
    from cluster.identity.operator_records import NameForgotten
    from cluster.ids import parse_node_name

    wanted = parse_node_name(name)
    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    found = _old_one(speaks.status(), wanted, old_id)
    statement = NameForgotten(name=wanted, node_id=node_id_of(found))
    ask_first(f"Take the name {wanted} from {_shown(found)}, {found['state']}?", is_sure=is_sure)
    tell(speaks.say(statement), as_json=as_json)


def _old_one(status: dict[str, Any], name: str, old_id: str | None) -> dict[str, Any]:
    candidates = named_nodes(status, name)
    if not candidates:
        fail(f"no node is called {name}; `esnode cluster members` lists them", code=EXIT_USAGE)
    if old_id is not None:
        return find_node({"nodes": candidates}, old_id)
    silent = [one for one in candidates if not _works(one)]
    if len(candidates) == 1:
        return candidates[0]
    if len(silent) != 1:
        listed = "; ".join(f"{one['id']} {one['state']}" for one in candidates)
        fail(f"several keys go by {name}, say which with --id: {listed}", code=EXIT_USAGE)
    return silent[0]


@click.command()
@click.argument("node", required=False)
@click.option("--certificate", metavar="SERIAL", help="One certificate: node, invite, operator.")
@click.option("--note", "reason", default="", metavar="TEXT", help="Why; kept in the log.")
@with_orders
@with_yes
@click.pass_context
@tells_errors_in_one_line
def revoke(
    ctx: click.Context,
    node: str | None,
    certificate: str | None,
    reason: str,
    is_sure: bool,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """Withdraw trust in a node's key, or in one certificate.

    A revoked node is a stranger within a second, for ever: its machine needs a new key. A revoked
    invite lets no more in, and those who came by it stay. An operator's certificate is revoked with
    the authority's key only.

    \b
    esnode cluster revoke gpu-09 --note stolen
    esnode cluster revoke --certificate 1ac2817b7b6112c8 --note "token in a chat"
    """
    from cluster.identity.operator_records import CertificateRevoked, NodeRevoked

    if (node is None) == (certificate is None):
        fail("say whom: a NODE, or --certificate SERIAL", code=EXIT_USAGE)
    _check_note(reason)
    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    statement: Statement
    status = speaks.status()
    by_authority = False
    if node is not None:
        found = find_node(status, node)
        statement = NodeRevoked(node_id=node_id_of(found), note=reason)
        question = f"Never believe the key of {_shown(found)} again?"
    else:
        serial = parse_serial(certificate or "")
        statement = CertificateRevoked(serial=serial, note=reason)
        by_authority = speaks.is_operator_serial(serial)
        question = f"Make certificate {serial:x} void?"
    ask_first(question, is_sure=is_sure)
    tell(speaks.say(statement, by_authority=by_authority), as_json=as_json)


def _check_note(reason: str) -> None:
    from cluster.identity.operator_records import NOTE_CHARACTERS_MAX

    if len(reason) > NOTE_CHARACTERS_MAX or not reason.isprintable():
        fail(f"--note is one line of at most {NOTE_CHARACTERS_MAX} characters", code=EXIT_USAGE)


def _works(node: dict[str, Any]) -> bool:
    return node["state"] in ("alive", "degraded")


def _shown(node: dict[str, Any]) -> str:
    return f"{node['name']} ({str(node['id'])[:8]}, rack {node['rack']})"
