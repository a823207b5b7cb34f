"""What the cluster's commands share: where keys lie, where the agent is, and how errors are told.

Its own file because every such command needs some of it. Keys lie in two kinds of place: what an
operator keeps (``~/.config/esnode/NAME``), and what a node keeps (``STATE_DIR/identity``). It must
not know what any command does with them. Imports of keys and clients wait until a command runs.
"""

import contextlib
import functools
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import click

from esnode.cli.context import (
    EXIT_DEGRADED,
    EXIT_NOT_ALLOWED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    agent_url,
    config_or_exit,
    fail,
)
from esnode.clock import unix_seconds
from esnode.config.load import state_directory

if TYPE_CHECKING:
    from cluster.credentials import OperatorFolder
    from esnode.client import AgentRefused, Door

P = ParamSpec("P")
R = TypeVar("R")
Command = TypeVar("Command", bound=Callable[..., Any])


def with_operator_folder(command: Command) -> Command:
    """Give a command the options that say which operator folder is meant."""
    command = click.option(
        "--operator-dir",
        metavar="DIR",
        help="Folder of the operator's keys, in place of ~/.config/esnode/CLUSTER.",
    )(command)
    return click.option(
        "--cluster",
        "cluster_name",
        metavar="NAME",
        help="Which cluster's keys, when there are several.",
    )(command)


def with_socket(command: Command) -> Command:
    """Give a command the option that names another control socket."""
    return click.option(
        "--socket",
        "socket_path",
        metavar="FILE",
        help="The agent's control socket, e.g. one that ssh forwards; else STATE_DIR/agent.sock.",
    )(command)


def with_yes(command: Command) -> Command:
    """Give a command the option that answers its question."""
    return click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")(command)


def tells_errors_in_one_line(command: Callable[P, R]) -> Callable[P, R]:
    """Whatever this command runs into that is nobody's bug: one line, and the code for it."""

    @functools.wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        from cluster.errors import PeerFault
        from cluster.identity.files import IdentityUnusable
        from esnode.client import AgentForbids, AgentRefused, AgentUnreachable
        from esnode.state import StateUnusable

        try:
            return command(*arguments, **options)
        except AgentForbids as error:
            fail(str(error), code=EXIT_NOT_ALLOWED)
        except AgentRefused as error:
            fail(_explained(error), code=_exit_code(error))
        except AgentUnreachable as error:
            fail(str(error), code=EXIT_UNREACHABLE)
        except PeerFault as error:
            fail(str(error), code=EXIT_USAGE)
        except (IdentityUnusable, StateUnusable) as error:
            is_forbidden = isinstance(error.__context__, PermissionError)
            fail(str(error), code=EXIT_NOT_ALLOWED if is_forbidden else EXIT_DEGRADED)

    return run


def _explained(error: "AgentRefused") -> str:
    if error.status == 404 and not error.code:
        return f"{error}; it is of a version that knows no cluster: update it"
    return str(error)


def _exit_code(error: "AgentRefused") -> int:
    if error.code in ("no-cluster", "withdrawn", "refused", "bad-order"):
        return EXIT_USAGE
    if error.code in ("cluster-unavailable", "starting"):
        return EXIT_UNREACHABLE
    if error.status == 0 or (error.status in (404, 502, 503, 504) and not error.code):
        return EXIT_UNREACHABLE
    return EXIT_USAGE if error.status == 404 else EXIT_DEGRADED


@contextlib.contextmanager
def reading_what(shown: str) -> Iterator[None]:
    """What an agent says may lack what this version looks for: that is one line, too.

    Raises:
        AgentRefused: it does.
    """
    from esnode.client import AgentRefused

    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError):
        raise AgentRefused(
            f"what the agent at {shown} says cannot be read; is it of another version?"
        ) from None


def now_unix_seconds() -> int:
    """The time that is written into certificates and records."""
    return int(unix_seconds())


random_bytes = secrets.token_bytes
"""Where keys come from."""


def reading_door(ctx: click.Context, *, known: "Door | None" = None) -> "Door":
    """The agent that questions go to: as for `esnode status`; `known` is where it was until now."""
    from esnode.client import url_door

    return url_door(agent_url(ctx, known=None if known is None else known.base_url))


def control_door(ctx: click.Context, socket_path: str | None = None) -> "Door":
    """The agent that orders go to: the one of this machine's state folder."""
    from esnode.client import socket_door
    from esnode.control_socket import NAME as SOCKET

    kept: dict[str, Any] = ctx.find_root().obj or {}
    if kept.get("agent_url"):
        fail(
            "--agent is for questions; orders go through the socket of an agent on this machine: "
            "name its folder with --state-dir, or a socket with --socket",
            code=EXIT_USAGE,
        )
    if socket_path is not None:
        return socket_door(Path(socket_path))
    return socket_door(state_folder(ctx) / SOCKET)


def state_folder(ctx: click.Context) -> Path:
    """Where the agent of this machine keeps its state."""
    try:
        return state_directory(config_or_exit(ctx).config, os.environ)
    except RuntimeError:
        fail("this user has no home folder; say where with --state-dir", code=EXIT_USAGE)


def identity_folder(ctx: click.Context) -> Path:
    """Where this machine keeps its node key and certificates."""
    from cluster.identity.files import node_folder

    return node_folder(state_folder(ctx))


@contextlib.contextmanager
def as_owner_of(folder: Path) -> Iterator[None]:
    """Root writes a state folder as its owner, else the agent could not read what is written."""
    try:
        owner = folder.stat()
    except OSError:
        yield  # there is none yet, or it says so itself when it is used
        return
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    group = os.getegid()
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)


@contextlib.contextmanager
def held_state_folder(ctx: click.Context) -> Iterator[Path]:
    """The state folder while no agent runs, and none can start.

    Raises:
        StateUnusable: it cannot be made or written.
    """
    from esnode.state import StateFolder, StateInUse

    path = state_folder(ctx)
    with as_owner_of(path):
        try:
            held = StateFolder(path)
        except StateInUse:
            fail(
                f"an agent runs in {path} and has no control socket: it is just starting, or of "
                "an older version; try again, or stop it first",
                code=EXIT_UNREACHABLE,
            )
        try:
            yield path
        finally:
            held.close()


def config_home() -> Path:
    """Where this user's configuration lies."""
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if configured.is_absolute():  # Source: XDG Base Directory: a relative one is to be ignored
        return configured
    home = os.environ.get("HOME")
    try:
        return (Path(home) if home else Path.home()) / ".config"
    except RuntimeError:
        fail("this user has no home folder; say where with --operator-dir", code=EXIT_USAGE)


def load_operator_folder(
    operator_dir: str | None, cluster_name: str | None
) -> "tuple[Path, OperatorFolder]":
    """The operator's keys: those named, else the only ones there are.

    Raises:
        IdentityUnusable: a file is missing, torn, foreign or open to others.
    """
    from cluster.credentials import load_operator

    path = Path(operator_dir) if operator_dir else _find_operator_folder(cluster_name)
    folder = load_operator(path)
    if cluster_name is not None and folder.authority.name != cluster_name:
        fail(
            f"{path}: holds the keys of cluster {folder.authority.name}, not of {cluster_name}",
            code=EXIT_USAGE,
        )
    return path, folder


def _find_operator_folder(cluster_name: str | None) -> Path:
    from cluster.identity.files import AUTHORITY_CERTIFICATE, IdentityUnusable, authority_folder
    from cluster.ids import parse_cluster_name

    home = config_home()
    if cluster_name is not None:
        return authority_folder(home, parse_cluster_name(cluster_name))
    above = home / "esnode"
    try:
        found = sorted(
            path
            for path in above.iterdir()
            if not path.name.startswith(".") and os.path.lexists(path / AUTHORITY_CERTIFICATE)
        )
    except FileNotFoundError:
        found = []
    except OSError as error:
        raise IdentityUnusable(f"{above}: {error.strerror}") from error
    if not found:
        fail(
            f"no keys of an operator in {above}; `esnode cluster init NAME` makes a cluster, "
            "--operator-dir names another folder",
            code=EXIT_USAGE,
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        fail(
            f"keys of several clusters in {above}: {names}; choose with --cluster", code=EXIT_USAGE
        )
    return found[0]


def ask_first(question: str, *, is_sure: bool) -> None:
    """Let somebody at a terminal confirm; elsewhere only `--yes` does."""
    if is_sure:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"{question} Nobody is there to ask: say --yes", code=EXIT_USAGE)
    if not click.confirm(question, err=True):
        not_done()


def not_done() -> NoReturn:
    """End because somebody said no."""
    fail("nothing has been done", code=EXIT_DEGRADED)


def note(line: str) -> None:
    """Tell somebody at the terminal; what is printed for programs stays clean."""
    click.echo(line, err=True)
