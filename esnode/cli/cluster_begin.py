"""`esnode cluster init` and `invite`: how a cluster begins, and how others are let in.

Its own file because these are the commands that use the authority's key. A half-made cluster is
worse than none: `init` looks at everything first, and takes the operator's folder back when this
machine could not become the first node.
"""

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_orders import (
    check_no_node,
    default_node_name,
    order_join,
    save_stopped_node,
)
from esnode.cli.cluster_places import (
    config_home,
    control_door,
    held_state_folder,
    identity_folder,
    load_operator_folder,
    note,
    now_unix_seconds,
    random_bytes,
    reading_door,
    reading_what,
    tells_errors_in_one_line,
    with_operator_folder,
)
from esnode.cli.context import EXIT_DEGRADED, EXIT_USAGE, fail

if TYPE_CHECKING:
    from cluster.credentials import OperatorFolder
    from cluster.enrolment import AuthorityKeys
    from cluster.identity.tokens import InviteToken
    from cluster.ids import ClusterName, NodeName, RackId
    from esnode.client import AgentRefused

FIRST_OPERATOR = "first"
"""The name of a cluster's first operator: who that is, the cluster need not know."""
FOUNDING_TTL_SECONDS = 900
SEEDS_OF_A_TOKEN = 5
"""A machine knocks at all of them; one that answers is enough."""
_TTL_SECONDS_MAX = 3650 * 86_400
_LOOPBACK = ("127.", "[::1]:", "localhost:", "0.0.0.0:", "[::]:")


@click.command()
@click.argument("name")
@click.option("--rack", default="r01", show_default=True, help="Rack of this machine.")
@click.option("--name", "node", metavar="NODE", help="Name of this machine; else its host name.")
@click.option("--keys-only", is_flag=True, help="Only make the keys; the first node is elsewhere.")
@click.option("--found-again", is_flag=True, help="The keys exist: only make the first node anew.")
@click.option("--operator-dir", metavar="DIR", help="Where to put the operator's keys.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_init/1).")
@click.pass_context
@tells_errors_in_one_line
def init(
    ctx: click.Context,
    name: str,
    rack: str,
    node: str | None,
    keys_only: bool,
    found_again: bool,
    operator_dir: str | None,
    as_json: bool,
) -> None:
    """Make a new cluster: its keys, and this machine as its first node.

    The keys go to ~/.config/esnode/NAME: the authority's, which makes invites and operators, and
    the first operator's, which gives orders. Keep a copy; either can be taken offline. This machine
    gets a node key of its own in its agent's state folder, whether the agent runs or not.

    \b
    esnode cluster init lab
    esnode cluster init lab --rack r07 --name gpu-01
    esnode cluster init lab --keys-only --operator-dir /media/stick/lab
    """
    from cluster.identity.files import authority_folder
    from cluster.ids import parse_cluster_name, parse_rack

    cluster = parse_cluster_name(name)
    rack_id = parse_rack(rack)
    if keys_only and found_again:
        fail("--keys-only makes keys, --found-again has them: choose one", code=EXIT_USAGE)
    node_name = None if keys_only else default_node_name(node)
    folder = Path(operator_dir) if operator_dir else authority_folder(config_home(), cluster)
    if node_name is not None:
        check_no_node(identity_folder(ctx))
    if found_again:
        keys = _authority_of(*load_operator_folder(str(folder), cluster))
    else:
        keys = _make_keys(folder, cluster)
    joined: dict[str, Any] = {}
    if node_name is not None:
        joined = _found(ctx, keys, rack_id, node_name, made=None if found_again else folder)
    document = {
        "schema": "esnode.cluster_init/1",
        "cluster": {"id": str(keys.authority.cluster_id), "name": cluster},
        "operator_folder": str(folder),
        "node": joined.get("node"),
        "detail": joined.get("detail"),
    }
    click.echo(json.dumps(document, indent=2) if as_json else _told(document, rack_id))


def _make_keys(folder: Path, cluster: "ClusterName") -> "AuthorityKeys":
    from cluster.credentials import save_operator
    from cluster.enrolment import add_operator, found_cluster
    from cluster.ids import parse_node_name

    if os.path.lexists(folder):
        fail(_existing(folder, cluster), code=EXIT_DEGRADED)
    now = now_unix_seconds()
    keys = found_cluster(cluster, now_unix_seconds=now, random_bytes=random_bytes)
    operator = add_operator(
        keys, parse_node_name(FIRST_OPERATOR), now_unix_seconds=now, random_bytes=random_bytes
    )
    save_operator(folder, keys, operator)
    return keys


def _existing(folder: Path, cluster: str) -> str:
    from cluster.credentials import load_operator
    from cluster.identity.files import IdentityUnusable

    try:
        authority = load_operator(folder).authority
    except IdentityUnusable as error:
        return f"{folder} is there already, and is no folder of keys ({error}); move it away first"
    return (
        f"cluster {authority.name} ({authority.cluster_id.short}) has its keys in {folder} "
        "already; "
        f"`esnode cluster invite` lets machines in, `esnode cluster init {cluster} --found-again` "
        "makes a new first node when all were lost"
    )


def _found(
    ctx: click.Context,
    keys: "AuthorityKeys",
    rack: "RackId",
    node: "NodeName",
    *,
    made: Path | None,
) -> dict[str, Any]:
    """Make this machine the first node; the keys just `made` go where that certainly failed."""
    from cluster.errors import PeerFault
    from cluster.identity.files import IdentityUnusable
    from esnode.client import AgentForbids, AgentRefused, AgentStopped, AgentUnreachable
    from esnode.state import StateUnusable

    token = _issue(keys, rack, ttl_seconds=FOUNDING_TTL_SECONDS, uses=1, may_found=True)
    try:
        try:
            return order_join(control_door(ctx), token, node)
        except AgentStopped:
            with held_state_folder(ctx):
                return save_stopped_node(identity_folder(ctx), token, node)
    except (AgentForbids, PeerFault, IdentityUnusable, StateUnusable, SystemExit):
        _take_back(made)
        raise
    except (AgentRefused, AgentUnreachable) as error:
        if isinstance(error, AgentRefused) and _is_certain(error):
            _take_back(made)
            raise
        # It may have joined or not: the keys must stay.
        fail(
            f"{error}; `esnode cluster status` shows whether it is a node now; the keys were made",
            code=EXIT_DEGRADED,
        )


def _is_certain(error: "AgentRefused") -> bool:
    """Whether an agent that answers like this has certainly not joined."""
    return 400 <= error.status < 500 or error.code == "identity-unusable"


def _take_back(made: Path | None) -> None:
    """Nobody has used these keys."""
    if made is not None:
        shutil.rmtree(made, ignore_errors=True)


def _issue(keys: "AuthorityKeys", rack: "RackId", **wish: Any) -> "InviteToken":
    from cluster.enrolment import InviteWish, issue_invite

    seeds = wish.pop("seeds", ())
    return issue_invite(
        keys,
        InviteWish(rack=rack, **wish),
        seeds=seeds,
        now_unix_seconds=now_unix_seconds(),
        random_bytes=random_bytes,
    )


def _told(document: dict[str, Any], rack: str) -> str:
    cluster, node = document["cluster"], document["node"]
    lines = [
        f"cluster {cluster['name']} ({cluster['id'][:8]}) is made",
        f"  keys of the authority and of its first operator: {document['operator_folder']}",
        "  keep a copy of that folder: without authority.key nobody can be invited",
    ]
    if node is None:
        lines += [
            "next, a token for the first node, and the node itself:",
            f"  esnode cluster invite --cluster {cluster['name']} --rack {rack} --founding",
            "  esnode cluster join < token",
        ]
        return "\n".join(lines)
    lines += [
        f"  this machine is its node {node['name']} ({node['id'][:8]}) in rack {node['rack']}",
        *([f"  {document['detail']}"] if document["detail"] else []),
        "next, a token for others, and the state of the whole:",
        f"  esnode cluster invite --rack {rack} --ttl 24h",
        "  esnode cluster status",
    ]
    return "\n".join(lines)


@click.command()
@click.option("--rack", required=True, help="The rack that the machines are in.")
@click.option("--ttl", default="24h", show_default=True, help="How long it lets in: 30m, 24h, 7d.")
@click.option("--uses", type=click.IntRange(1, 1_000_000), metavar="N", help="For N machines.")
@click.option("--name-prefix", default="", metavar="P", help="Their names begin with P.")
@click.option("--approve", is_flag=True, help="Each waits for `esnode cluster approve`.")
@click.option("--founding", is_flag=True, help="For the first node: it lets itself in; one use.")
@click.option("--seed", "seeds", multiple=True, metavar="HOST:PORT", help="Where members are.")
@with_operator_folder
@click.pass_context
@tells_errors_in_one_line
def invite(
    ctx: click.Context,
    rack: str,
    ttl: str,
    uses: int | None,
    name_prefix: str,
    approve: bool,
    founding: bool,
    seeds: tuple[str, ...],
    operator_dir: str | None,
    cluster_name: str | None,
) -> None:
    """Print a token that lets machines into a rack.

    The token is the only thing on standard output, one line. It is a secret: until it ends or is
    used up, whoever holds it can make nodes of that rack. Without --seed it names members that the
    agent here knows.

    \b
    esnode cluster invite --rack r01 --ttl 24h > token
    esnode cluster invite --rack r01 --uses 16 --name-prefix gpu- --ttl 2h
    esnode cluster invite --rack r02 --approve --seed 10.0.0.11:7947
    esnode cluster invite --rack r01 | ssh gpu-02 sudo esnode cluster join
    """
    from cluster.identity.tokens import parse_seed, print_token
    from cluster.ids import parse_name_prefix, parse_rack
    from esnode.config.values import BadValue, parse_duration_seconds

    try:
        ttl_seconds = int(parse_duration_seconds(ttl))
    except BadValue as error:
        fail(f"--ttl: {ttl!r} {error}", code=EXIT_USAGE)
    if ttl_seconds < 1:
        fail(f"--ttl: {ttl!r} is over at once", code=EXIT_USAGE)
    if ttl_seconds > _TTL_SECONDS_MAX:
        fail(f"--ttl: {ttl!r} is more than ten years (3650d)", code=EXIT_USAGE)
    if founding and (uses not in (None, 1) or approve):
        fail("--founding is for one node that lets itself in: leave --uses and --approve out",
             code=EXIT_USAGE)  # fmt: skip
    rack_id, prefix = parse_rack(rack), parse_name_prefix(name_prefix)
    path, folder = load_operator_folder(operator_dir, cluster_name)
    keys = _authority_of(path, folder)
    given = tuple(parse_seed(seed) for seed in seeds)
    known = given or (() if founding else _known_seeds(ctx, folder))
    token = _issue(
        keys, rack_id, ttl_seconds=ttl_seconds, uses=1 if founding else uses, name_prefix=prefix,
        needs_approval=approve, may_found=founding, seeds=known,
    )  # fmt: skip
    note(_terms(keys, token, rack_id, ttl, uses=1 if founding else uses, prefix=prefix))
    if any(seed.startswith(_LOOPBACK) for seed in known):
        note("note: a loopback address means this machine only: others need --seed HOST:PORT")
    click.echo(print_token(token))


def _authority_of(path: Path, folder: "OperatorFolder") -> "AuthorityKeys":
    if folder.authority_keys is None:
        fail(
            f"{path}: authority.key is not here; put it back, or name the folder that has it with "
            "--operator-dir",
            code=EXIT_USAGE,
        )
    return folder.authority_keys


def _known_seeds(ctx: click.Context, folder: "OperatorFolder") -> tuple[str, ...]:
    """Members that the agent knows: itself first, then others that are alive, by name."""
    from cluster.errors import Malformed
    from cluster.identity.tokens import parse_seed
    from esnode.client import AgentRefused, AgentUnreachable, ask

    hint = "name a member's address with --seed HOST:PORT"
    door = reading_door(ctx)
    try:
        document = ask(door, "/v1/cluster", schema="esnode.cluster_status/")
    except (AgentRefused, AgentUnreachable) as error:
        fail(f"no members are known: {error}; {hint}", code=EXIT_USAGE)
    with reading_what(door.shown):
        cluster = document["cluster"]
        if cluster["id"] != str(folder.authority.cluster_id):
            fail(
                f"the agent is in cluster {cluster['name']} ({cluster['id'][:8]}), the keys are "
                f"those of {folder.authority.name} ({folder.authority.cluster_id.short}); {hint}",
                code=EXIT_USAGE,
            )
        nodes = sorted(document["nodes"], key=lambda node: (not node["is_asked"], node["name"]))
        here = [node for node in nodes if node["state"] in ("alive", "degraded")]
    addresses: list[str] = []
    for node in here:
        with contextlib.suppress(Malformed):
            addresses.append(parse_seed(str(node.get("address"))))
    if not addresses:
        fail(f"the agent knows no member's address; {hint}", code=EXIT_USAGE)
    return tuple(addresses[:SEEDS_OF_A_TOKEN])


def _terms(
    keys: "AuthorityKeys",
    token: "InviteToken",
    rack: str,
    ttl: str,
    *,
    uses: int | None,
    prefix: str,
) -> str:
    from cluster.keyring import read_certificate

    serial = read_certificate(token.invite_der).serial
    count = "any number of machines" if uses is None else f"{uses} machine{'s' * (uses != 1)}"
    named = f" named {prefix}..." if prefix else ""
    at = f", found at {', '.join(token.seeds)}" if token.seeds else ""
    return (
        f"invite {serial:x} to rack {rack} of {keys.authority.name}: {count}{named} "
        f"within {ttl}{at}"
    )
