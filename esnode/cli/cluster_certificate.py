"""`esnode cluster show-certificate`: what a certificate of this machine says, read from its file.

Its own file because it needs no agent: it is for the day on which something does not fit.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_places import (
    as_owner_of,
    identity_folder,
    load_operator_folder,
    now_unix_seconds,
    state_folder,
    tells_errors_in_one_line,
    with_operator_folder,
)
from esnode.cli.cluster_text import utc_time
from esnode.cli.context import EXIT_USAGE, fail

if TYPE_CHECKING:
    from cluster.identity.certificates import CertificateFacts

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A certificate, what it is one of, and what follows from it."""

    kind: str
    path: str
    facts: tuple[tuple[str, str], ...]
    chain: tuple["CertificateFacts", ...]


@click.command("show-certificate")
@click.option("--node", "which", flag_value="node", default="node", help="This node's (default).")
@click.option("--authority", "which", flag_value="authority", help="The cluster's root.")
@click.option("--operator", "which", flag_value="operator", help="The operator's.")
@click.option("--pem", is_flag=True, help="The certificate itself, for openssl.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.certificate/1).")
@with_operator_folder
@click.pass_context
@tells_errors_in_one_line
def show_certificate(
    ctx: click.Context,
    which: str,
    pem: bool,
    as_json: bool,
    operator_dir: str | None,
    cluster_name: str | None,
) -> None:
    """Show what a certificate of this machine says.

    \b
    esnode cluster show-certificate
    esnode cluster show-certificate --operator --cluster lab
    esnode cluster show-certificate --pem | openssl x509 -noout -text
    """
    is_node = which == "node"
    shown = _node(ctx) if is_node else _of_operator(which, operator_dir, cluster_name)
    if pem:
        from cluster.keyring import write_certificates_pem

        click.echo(write_certificates_pem(*shown.chain).decode(), nl=False)
        return
    certificate = shown.chain[0]
    window = certificate.window
    if as_json:
        document: dict[str, Any] = {
            "schema": "esnode.certificate/1",
            "kind": shown.kind,
            **{name.replace(" ", "_"): value for name, value in shown.facts},
            "serial": f"{certificate.serial:x}",
            "begins_at": utc_time(window.begin_unix_seconds),
            "ends_at": utc_time(window.end_unix_seconds),
            "validity": _validity(certificate),
            "path": shown.path,
        }
        click.echo(json.dumps(document, indent=2))
        return
    rows = [
        ("certificate", f"of the {shown.kind}, {shown.path}"),
        *shown.facts,
        ("serial", f"{certificate.serial:x}"),
        ("begins", utc_time(window.begin_unix_seconds)),
        ("ends", _ends(certificate)),
    ]
    click.echo(_aligned(rows))


def _node(ctx: click.Context) -> Shown:
    from cluster.credentials import load_node
    from cluster.identity.files import NODE_CHAIN

    folder = identity_folder(ctx)
    with as_owner_of(state_folder(ctx)):
        if not folder.exists():
            fail("this machine is in no cluster; `esnode cluster join` makes it a node",
                 code=EXIT_USAGE)  # fmt: skip
        node = load_node(folder)
    identity = node.identity
    facts = (
        ("name", str(identity.name)),
        ("id", str(identity.node_id)),
        ("rack", str(identity.rack)),
        ("roles", ",".join(identity.roles) or "none"),
        ("cluster", f"{node.authority.name} {node.authority.cluster_id}"),
        ("issuer", f"{identity.rights.kind} {identity.rights.serial:x}"),
    )
    return Shown(kind="node", path=str(folder / NODE_CHAIN), facts=facts, chain=node.chain)


def _of_operator(which: str, operator_dir: str | None, cluster_name: str | None) -> Shown:
    from cluster.identity.files import AUTHORITY_CERTIFICATE, OPERATOR_CERTIFICATE

    path, folder = load_operator_folder(operator_dir, cluster_name)
    authority = folder.authority
    cluster = f"{authority.name} {authority.cluster_id}"
    if which == "authority":
        has_key = "here" if folder.authority_keys else "not here (offline)"
        return Shown(
            kind="authority",
            path=str(path / AUTHORITY_CERTIFICATE),
            facts=(("cluster", cluster), ("key", has_key)),
            chain=(authority.certificate,),
        )
    own = folder.operator_keys
    if own is None:
        fail(f"{path}: operator.key is not here", code=EXIT_USAGE)
    return Shown(
        kind="operator",
        path=str(path / OPERATOR_CERTIFICATE),
        facts=(
            ("name", str(own.operator.name)),
            ("id", str(own.operator.operator_id)),
            ("cluster", cluster),
        ),
        chain=(own.certificate,),
    )


def _validity(certificate: "CertificateFacts") -> str:
    from cluster.identity.standing import judge_validity

    return str(judge_validity(certificate.window, now_unix_seconds()))


def _ends(certificate: "CertificateFacts") -> str:
    seconds = certificate.window.end_unix_seconds - now_unix_seconds()
    days = abs(seconds) // _DAY_SECONDS
    when = f"in {days} days" if seconds >= 0 else f"{days} days ago"
    return f"{utc_time(certificate.window.end_unix_seconds)}, {when} ({_validity(certificate)})"


def _aligned(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)
