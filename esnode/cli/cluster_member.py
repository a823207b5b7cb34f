"""`esnode cluster join`, `leave` and `renew`: this machine as a member.

Its own file because these commands act on the machine where they are typed, and need no operator's
key. It must not know how an agent joins (see `cluster_orders` for both ways).
"""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_orders import (
    ORDER_SECONDS,
    default_node_name,
    kept_name,
    order_join,
    order_rejoin,
    renew_stopped_node,
    save_stopped_node,
    save_stopped_return,
    waiting_line,
)
from esnode.cli.cluster_places import (
    as_owner_of,
    ask_first,
    control_door,
    held_state_folder,
    identity_folder,
    state_folder,
    tells_errors_in_one_line,
    with_yes,
)
from esnode.cli.context import EXIT_DEGRADED, EXIT_USAGE, fail

if TYPE_CHECKING:
    from cluster.identity.tokens import InviteToken


@click.command()
@click.argument("token", required=False)
@click.option("--name", "node", metavar="NODE", help="Name of this machine; else its host name.")
@click.option("--token-file", metavar="FILE", help="Read the token from a file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_join/1).")
@click.pass_context
@tells_errors_in_one_line
def join(
    ctx: click.Context,
    token: str | None,
    node: str | None,
    token_file: str | None,
    as_json: bool,
) -> None:
    """Make this machine a node, or come back after leave.

    TOKEN is the line that `esnode cluster invite` printed. As an argument, others on this machine
    can see it while the command runs; standard input and --token-file hide it. The agent may run or
    not. After `esnode cluster leave`, without a token: the node comes back under the same key.

    \b
    esnode cluster join < token
    esnode cluster join --token-file /run/secrets/invite --name gpu-02
    esnode cluster join esnode-invite-1.AbC...
    esnode cluster join
    """
    text = _read_token(token, token_file)
    joined = _come_back(ctx, node) if text is None else _come(ctx, text, node)
    if as_json:
        click.echo(json.dumps(joined, indent=2))
        return
    cluster, own = joined["cluster"], joined["node"]
    click.echo(
        f"this machine is node {own['name']} ({own['id'][:8]}) in rack {own['rack']} of cluster "
        f"{cluster['name']} ({cluster['id'][:8]})"
    )
    if joined["detail"]:
        click.echo(joined["detail"])


def _come(ctx: click.Context, text: str, node: str | None) -> dict[str, Any]:
    from cluster.identity.tokens import parse_token
    from esnode.client import AgentStopped

    opened = parse_token(text)
    folder = identity_folder(ctx)
    with as_owner_of(state_folder(ctx)):
        name = default_node_name(node or kept_name(folder))
    try:
        joined = order_join(control_door(ctx), opened, name)
    except AgentStopped:
        with held_state_folder(ctx):
            joined = save_stopped_node(folder, opened, name)
    return _with_waiting(joined, opened)


def _with_waiting(joined: dict[str, Any], token: "InviteToken") -> dict[str, Any]:
    waiting = waiting_line(token, joined)
    if waiting is None:
        return joined
    return joined | {"detail": f"{joined['detail']}\n{waiting}" if joined["detail"] else waiting}


def _come_back(ctx: click.Context, node: str | None) -> dict[str, Any]:
    from esnode.client import AgentStopped

    if node is not None:
        fail("--name is for a new node; one that comes back keeps its name", code=EXIT_USAGE)
    try:
        return order_rejoin(control_door(ctx))
    except AgentStopped:
        with held_state_folder(ctx):
            return save_stopped_return(identity_folder(ctx))


def _read_token(token: str | None, token_file: str | None) -> str | None:
    """The token's text from wherever it is; None where there is none."""
    from cluster.identity.tokens import TOKEN_CHARACTERS_MAX

    if token is not None and token_file is not None:
        fail("a TOKEN and --token-file: give one of them", code=EXIT_USAGE)
    if token_file is not None:
        try:
            with open(token_file, encoding="utf-8", errors="replace") as file:
                text = file.read(TOKEN_CHARACTERS_MAX + 1)
        except OSError as error:
            fail(f"{token_file}: {error.strerror}", code=EXIT_USAGE)
        if not text.strip():
            fail(f"{token_file}: is empty", code=EXIT_USAGE)
        return text
    if token not in (None, "-"):
        return token
    if token is None and sys.stdin.isatty():
        return None
    text = sys.stdin.read(TOKEN_CHARACTERS_MAX + 1)
    if not text.strip():
        if token == "-":
            fail("standard input holds no token", code=EXIT_USAGE)
        return None
    return text


@click.command()
@with_yes
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_leave/1).")
@click.pass_context
@tells_errors_in_one_line
def leave(ctx: click.Context, is_sure: bool, as_json: bool) -> None:
    """Take this machine out of its cluster, in good order.

    The others are told, so that nobody takes it for failed. The machine keeps its key: `esnode
    cluster join` without a token brings it back, also after a restart of the agent.

    \b
    esnode cluster leave
    esnode cluster leave --yes
    """
    from esnode.client import AgentStopped, ask

    door = control_door(ctx)
    ask_first("Take this machine out of its cluster?", is_sure=is_sure)
    try:
        left = ask(
            door,
            "/v1/control/cluster/leave",
            schema="esnode.cluster_leave/",
            order={},
            timeout_seconds=ORDER_SECONDS,
        )
    except AgentStopped as error:
        raise AgentStopped(
            f"{error}: only a running agent can tell the others (of one that is gone for good, an "
            "operator says so: `esnode cluster remove NODE`)"
        ) from None
    if as_json:
        click.echo(json.dumps(left, indent=2))
        return
    informed = left["informed"]
    click.echo(
        f"this machine has left; {informed} member{'s' * (informed != 1)} confirmed it. `esnode "
        "cluster join` brings it back"
    )


@click.command()
@click.argument("token", required=False)
@click.option("--token-file", metavar="FILE", help="Read the token from a file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_renew/1).")
@click.pass_context
@tells_errors_in_one_line
def renew(ctx: click.Context, token: str | None, token_file: str | None, as_json: bool) -> None:
    """Give this node a new certificate; its key stays.

    Nodes warn 30 days before their certificate ends. TOKEN is a fresh invite to the node's rack,
    taken as by `esnode cluster join`. The agent may run or not. Exit code 1: no member has accepted
    the new certificate (yet); they go on by the old one.

    \b
    esnode cluster invite --rack r01 --uses 1 | ssh gpu-02 sudo esnode cluster renew
    esnode cluster renew --token-file token
    """
    from cluster.identity.tokens import parse_token, print_token
    from esnode.client import AgentStopped, ask

    text = _read_token(token, token_file)
    if text is None:
        fail("renew needs the TOKEN of a fresh invite; it may come on standard input",
             code=EXIT_USAGE)  # fmt: skip
    opened = parse_token(text)
    try:
        renewed = ask(
            control_door(ctx),
            "/v1/control/cluster/renew",
            schema="esnode.cluster_renew/",
            order={"token": print_token(opened)},
            timeout_seconds=ORDER_SECONDS,
        )
        is_refused = renewed.get("admitted") is False
    except AgentStopped:
        is_refused = False  # that shows when the agent starts
        with held_state_folder(ctx):
            renewed = renew_stopped_node(identity_folder(ctx), opened)
    if "node" in renewed and "admitted" in renewed:  # an agent of before tells neither
        renewed = _with_waiting(renewed, opened)
    if as_json:
        click.echo(json.dumps(renewed, indent=2))
    else:
        click.echo(f"renewed until {renewed['ends_at']}")
        if detail := renewed.get("detail"):
            click.echo(detail)
    if is_refused:
        ctx.exit(EXIT_DEGRADED)
