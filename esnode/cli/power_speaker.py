"""What the power commands share: the agent's documents, the charters, signing, and following.

Its own file because each order has one course: look, show what will happen, ask, sign after the
very records that were looked at, then watch it come true. It must not know what is ordered.
"""

import functools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from esnode.cli.cluster_operator import Speaker
from esnode.cli.cluster_places import note, now_unix_seconds, reading_what
from esnode.cli.cluster_status import seconds_of
from esnode.cli.context import EXIT_DEGRADED, EXIT_UNREACHABLE, EXIT_USAGE, fail
from esnode.clock import monotonic_seconds

if TYPE_CHECKING:
    from cluster.rack.ledger.charter import Charter
    from cluster.rack.ledger.decrees import Decree
    from cluster.rack.units import CurrencyId
    from esnode.cli.cluster_records import SaidSoFar
    from esnode.client import Door
    from esnode.power_orders.known import CurrencyKnown, Machine

SCHEMA = "esnode.power/"
PATH = "/v1/power"
FOLLOW_SECONDS = 0.5
TOLD_SECONDS = 1.0
"""What takes no longer needs no progress."""
Command = TypeVar("Command", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


def tells_refusals(command: Callable[P, R]) -> Callable[P, R]:
    """An order that is refused: a line for each reason, and 1 or 2."""

    @functools.wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        from esnode.power_orders.refusals import CannotOrder

        try:
            return command(*arguments, **options)
        except CannotOrder as refused:
            fail(*refused.lines, code=EXIT_USAGE if refused.is_usage else EXIT_DEGRADED)

    return run


def with_wait(command: Command) -> Command:
    """The option that says for how long an order is watched."""
    return click.option(
        "--wait",
        default="20s",
        show_default=True,
        metavar="TIME",
        help="Watch until it is in force, at most so long; 0s: do not.",
    )(command)


def read_power(door: "Door") -> dict[str, Any]:
    """The power document of an agent; ends where it knows none."""
    from esnode.client import AgentRefused, ask

    try:
        document = ask(door, PATH, schema=SCHEMA)
    except AgentRefused as error:
        if error.status == 404 and not error.code:
            fail(
                f"the agent at {door.shown} is of a version that knows no rack power: update it",
                code=EXIT_UNREACHABLE,
            )
        raise
    with reading_what(door.shown):
        _ = document["node"], document["rack"], document["state"], document["gate"]["is_open"]
        _ = [(one["currency"], one["grade"], one["slots"]) for one in document["currencies"]]
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that an order is judged by, at one moment."""

    said: "SaidSoFar"
    charters: "Mapping[CurrencyId, Charter]"
    machines: "tuple[Machine, ...]"
    currencies: "tuple[CurrencyKnown, ...]"
    power: dict[str, Any]

    @property
    def racks(self) -> tuple[str, ...]:
        """The racks in which nodes are."""
        return tuple(dict.fromkeys(one.rack for one in self.machines))

    @property
    def other_ends(self) -> tuple[bytes, ...]:
        """Ends of branches that the next record does not follow."""
        from esnode.cli.cluster_records import last_record

        last = last_record(self.said)
        return tuple(one.hash for one in self.said.log.heads if one is not last)

    def known_of(self, currency: "CurrencyId") -> "CurrencyKnown":
        """What the agent tells of a currency; ends where it tells nothing."""
        from esnode.power_orders.known import currency_of

        found = currency_of(self.currencies, currency)
        if found is None:
            fail(
                f"the agent here is no member of {currency}: give the order at a member "
                "(--state-dir, or --socket with a forwarded one)",
                code=EXIT_USAGE,
            )
        return found


def look_around(speaks: Speaker) -> Look:
    """Ask the agent for all of it; nodes first, so that another cluster is noticed."""
    from cluster.errors import Malformed
    from cluster.rack.ledger.charter import read_charters
    from esnode.cli.cluster_records import fetch_log, read_said
    from esnode.client import AgentRefused
    from esnode.power_orders.known import read_currencies, read_machines

    cluster = speaks.status()
    power = read_power(speaks.door)
    said = read_said(fetch_log(speaks.door), speaks.folder.authority)
    try:
        with reading_what(speaks.door.shown):
            machines, currencies = read_machines(cluster), read_currencies(power)
    except Malformed as error:
        raise AgentRefused(f"what the agent says cannot be read: {error}") from None
    charters = read_charters(said.log.records)
    for fork in said.log.forks:
        note(f"note: {fork.line}")
    return Look(said=said, charters=charters, machines=machines, currencies=currencies, power=power)


def sign(speaks: Speaker, look: Look, decree: "Decree") -> list[str]:
    """Say it as the record after those that were looked at, and not after any other."""
    from cluster.identity.operator_records import Other
    from cluster.rack.ledger.decrees import encode_decree
    from esnode.cli.cluster_records import fetch_log, next_records, post_records, read_said

    said = read_said(fetch_log(speaks.door), speaks.folder.authority)
    if {one.hash for one in said.log.heads} != {one.hash for one in look.said.log.heads}:
        fail(
            "an operator has said something meanwhile: nothing has been done; look again",
            code=EXIT_DEGRADED,
        )
    kind, body = encode_decree(decree)
    records = next_records(
        said,
        speaks.folder,
        Other(kind=kind, body=body),
        by_authority=False,
        now_unix_seconds=now_unix_seconds(),
    )
    return post_records(speaks.door, records)


def follow(
    door: "Door",
    wait: str,
    progress: Callable[[dict[str, Any]], tuple[bool, str]],
) -> bool:
    """Watch the document until it says that all is done; whether that came in time.

    Who does not want to watch is told nothing.
    """
    from esnode.client import AgentUnreachable

    began = monotonic_seconds()
    ends = began + seconds_of("--wait", wait)
    if ends <= began:
        return True
    is_terminal = sys.stderr.isatty()
    told = ""
    is_done = False
    while not is_done and (now := monotonic_seconds()) < ends:
        try:
            is_done, line = progress(read_power(door))
        except AgentUnreachable as error:
            line = str(error)
        if line != told and (is_terminal or is_done or now - began > TOLD_SECONDS):
            click.echo(f"\r{line}\x1b[K" if is_terminal else line, err=True, nl=not is_terminal)
            told = line
        if not is_done:
            time.sleep(min(FOLLOW_SECONDS, max(0.0, ends - monotonic_seconds())))
    if is_terminal and told:
        click.echo(err=True)
    return is_done
