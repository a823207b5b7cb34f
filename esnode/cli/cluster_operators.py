"""`esnode cluster operator` and `log`: who may give orders, and what they have said.

Its own file because it is about operators, not nodes. The log is judged here by the authority's
certificate where the operator's folder is at hand; what the agent calls a record is shown as it is.
"""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esnode.cli.cluster_operator import speaker, tell, with_orders
from esnode.cli.cluster_places import (
    ask_first,
    note,
    now_unix_seconds,
    random_bytes,
    reading_door,
    reading_what,
    tells_errors_in_one_line,
    with_operator_folder,
    with_socket,
    with_yes,
)
from esnode.cli.cluster_text import printable, utc_time
from esnode.cli.context import EXIT_DEGRADED, EXIT_USAGE, fail
from esnode.cli.text import table

if TYPE_CHECKING:
    from cluster.enrolment import OperatorKeys
    from cluster.identity.chains import TrustedAuthority
    from cluster.ids import NodeName
    from esnode.cli.cluster_operator import Speaker


@click.group()
def operator() -> None:
    """List those who may give orders; add and remove one.

    An operator's key signs what the cluster is told: approvals, removals, revocations. Invites are
    made with the authority's key, and so are operators.

    \b
    esnode cluster operator list
    esnode cluster operator add ada --to ada-keys
    """


@operator.command()
@click.argument("name")
@click.option("--to", "folder", metavar="DIR", help="Where to put the keys; else ./CLUSTER-NAME.")
@with_orders
@click.pass_context
@tells_errors_in_one_line
def add(
    ctx: click.Context,
    name: str,
    folder: str | None,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """Make an operator's keys, and tell the cluster about them.

    The folder goes to the new operator, who keeps it as ~/.config/esnode/CLUSTER. It holds no
    authority.key: the new operator gives orders, but invites nobody. Needs the authority's key.

    \b
    esnode cluster operator add ada
    esnode cluster operator add ada --to /media/stick/ada
    """
    from cluster.enrolment import add_operator
    from cluster.identity.operator_records import OperatorAdded
    from cluster.ids import parse_node_name
    from esnode.client import AgentUnreachable

    wanted = parse_node_name(name)
    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    authority = speaks.folder.authority_keys
    if authority is None:
        fail(f"{speaks.path}: authority.key is not here; it alone makes operators", code=EXIT_USAGE)
    _check_new(speaks, wanted)
    path = Path(folder) if folder else Path.cwd() / f"{authority.authority.name}-{wanted}"
    keys = add_operator(
        authority, wanted, now_unix_seconds=now_unix_seconds(), random_bytes=random_bytes
    )
    _save(path, authority.authority, keys)
    note(f"keys of operator {wanted}: {path}; they keep it as ~/.config/esnode/"
         f"{authority.authority.name}")  # fmt: skip
    try:
        lines = speaks.say(OperatorAdded(certificate_der=keys.certificate.der), by_authority=True)
    except AgentUnreachable as error:
        note(f"note: {error}")
        lines = [f"operator {wanted} is made; the first order introduces its keys to the cluster"]
    tell(lines, as_json=as_json)


def _check_new(speaks: "Speaker", name: "NodeName") -> None:
    """Whether no operator has this name yet, as far as that can be known here."""
    from esnode.cli.cluster_records import fetch_log, read_said
    from esnode.client import AgentUnreachable

    own = speaks.folder.operator_keys
    standing = {} if own is None else {own.operator.name: own.operator.serial}
    with contextlib.suppress(AgentUnreachable):  # which is told when the keys are made
        said = read_said(fetch_log(speaks.door), speaks.folder.authority)
        standing |= {one.name: one.serial for one in said.log.operators.values()}
    if name in standing:
        fail(
            f"there is an operator {name} already ({standing[name]:x}): choose another name, or "
            "`esnode cluster operator remove` that one first",
            code=EXIT_USAGE,
        )


def _save(path: Path, authority: "TrustedAuthority", keys: "OperatorKeys") -> None:
    from cluster.identity.files import (
        AUTHORITY_CERTIFICATE,
        OPERATOR_CERTIFICATE,
        OPERATOR_KEY,
        create_folder,
    )
    from cluster.keyring import write_certificates_pem

    create_folder(
        path,
        {
            AUTHORITY_CERTIFICATE: write_certificates_pem(authority.certificate),
            OPERATOR_KEY: keys.signer.to_pem(),
            OPERATOR_CERTIFICATE: write_certificates_pem(keys.certificate),
        },
    )


@operator.command("remove")
@click.argument("name")
@click.option("--note", "reason", default="", metavar="TEXT", help="Why; kept in the log.")
@with_orders
@with_yes
@click.pass_context
@tells_errors_in_one_line
def remove_operator(
    ctx: click.Context,
    name: str,
    reason: str,
    is_sure: bool,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """Revoke an operator; what was said before stands. Needs the authority's key.

    \b
    esnode cluster operator remove ada --note "left the company"
    """
    from cluster.identity.operator_records import CertificateRevoked
    from esnode.cli.cluster_records import fetch_log, read_said

    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    said = read_said(fetch_log(speaks.door), speaks.folder.authority)
    found = [
        one
        for one in said.log.operators.values()
        if name in (one.name, str(one.operator_id), f"{one.serial:x}")
    ]
    if len(found) != 1:
        known = ", ".join(f"{one.name} ({one.serial:x})" for one in said.log.operators.values())
        fail(
            f"{'several operators are' if found else 'no operator is'} called {name!r}; known are "
            f"{known or 'none'}: name one by its serial",
            code=EXIT_USAGE,
        )
    ask_first(f"Revoke operator {found[0].name} ({found[0].operator_id.short})?", is_sure=is_sure)
    statement = CertificateRevoked(serial=found[0].serial, note=reason)
    tell(speaks.say(statement, by_authority=True), as_json=as_json)


@operator.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_operators/1).")
@with_socket
@with_operator_folder
@click.pass_context
@tells_errors_in_one_line
def list_(
    ctx: click.Context,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
    socket_path: str | None,
) -> None:
    """List those whose orders count, by the log of the agent here.

    \b
    esnode cluster operator list
    """
    from esnode.cli.cluster_records import fetch_log, read_said

    speaks = speaker(ctx, operator_dir, cluster_name, socket_path)
    said = read_said(fetch_log(speaks.door), speaks.folder.authority)
    own = speaks.folder.operator_keys
    rows = [
        {
            "name": one.name,
            "id": str(one.operator_id),
            "serial": f"{one.serial:x}",
            "ends_at": utc_time(one.window.end_unix_seconds),
            "is_own": own is not None and one.operator_id == own.operator.operator_id,
            "records": sum(
                signed.record.signed_by == one.operator_id for signed in said.log.records
            ),
        }
        for one in said.log.operators.values()
    ]
    rows.sort(key=lambda row: str(row["name"]))
    if as_json:
        document = {"schema": "esnode.cluster_operators/1", "operators": rows}
        click.echo(json.dumps(document, indent=2))
        return
    if own is not None and not any(row["is_own"] for row in rows):
        note("note: the log does not know your own key yet; your first order introduces it")
    cells = [
        [str(row["name"]), str(row["id"])[:8], str(row["serial"]), str(row["ends_at"])[:10],
         str(row["records"]), "you" if row["is_own"] else ""]
        for row in rows
    ]  # fmt: skip
    click.echo(table(["OPERATOR", "ID", "SERIAL", "ENDS", "RECORDS", ""], cells, right=(4,)))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.operator_log/1).")
@click.pass_context
@tells_errors_in_one_line
def log(ctx: click.Context, as_json: bool) -> None:
    """Show what operators have said to the cluster.

    Each record names the one before it. Two after the same one are a fork: two operators spoke at
    once, or somebody has copied a key. Both are kept, and the exit code is 1.

    \b
    esnode cluster log
    esnode cluster log --json --agent http://gpu-07:9100
    """
    from esnode.cli.cluster_records import fetch_log

    door = reading_door(ctx)
    document = fetch_log(door)
    with reading_what(door.shown):
        lines = [printable(record["line"]) for record in document["records"]]
        forks = [printable(fork) for fork in document.get("forks") or ()]
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo("\n".join(lines) if lines else "no operator has said anything yet")
        for fork in forks:
            note(f"! {fork}")
        if waiting := document.get("waiting"):
            note(f"! {waiting} records wait for one before them, which has not arrived here")
    if forks:
        ctx.exit(EXIT_DEGRADED)
