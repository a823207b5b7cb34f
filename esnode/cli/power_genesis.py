"""`esnode power genesis`: a rack comes under a budget, from a file, from answers, or as a proposal.

Its own file because the genesis is signed once and says everything. It must not know how shares are
counted out.
"""

import importlib
import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_operator import speaker, tell, with_orders
from esnode.cli.cluster_places import (
    ask_first,
    note,
    reading_door,
    reading_what,
    tells_errors_in_one_line,
    with_yes,
)
from esnode.cli.context import EXIT_USAGE, fail
from esnode.cli.power_speaker import (
    Look,
    follow,
    look_around,
    read_power,
    sign,
    tells_refusals,
    with_wait,
)
from esnode.cli.power_text import ENFORCED

if TYPE_CHECKING:
    from cluster.rack.units import CurrencyId
    from esnode.cli.cluster_operator import Speaker
    from esnode.power_orders.genesis_file import Wish

FILE_BYTES_MAX = 1 << 20


@click.command()
@click.option("--file", "file", metavar="FILE", help="What to found: TOML, YAML or JSON by name.")
@click.option("--wizard", is_flag=True, help="Ask for everything, with proposals.")
@click.option("--propose", is_flag=True, help="Print a file made from the running cluster.")
@click.option("--rack", metavar="RACK", help="For --wizard and --propose; else the agent's own.")
@click.option("--budget", "budget", metavar="WATTS", help="For --propose: 52000, 52kW.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and sign nothing.")
@with_orders
@with_yes
@with_wait
@click.pass_context
@tells_errors_in_one_line
@tells_refusals
def genesis(
    ctx: click.Context,
    /,
    file: str | None,
    wizard: bool,
    propose: bool,
    rack: str | None,
    budget: str | None,
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
    wait: str,
    **keys: str | None,
) -> None:
    """Put a rack under a budget: its slots, what is charged for each, who begins with what.

    Each slot is charged a floor, always: what its machine draws without work at its lowest limits.
    What the budget leaves, less a margin, is held in shares by the nodes, who trade them. A load
    without an agent is static: charged in full. What will happen is shown before anything is
    signed, and a rack is founded only once.

    \b
    esnode power genesis --propose > r01.toml     from the running cluster; edit it
    esnode power genesis --file r01.toml --dry-run
    esnode power genesis --file r01.toml
    esnode power genesis --wizard --rack r01
    """
    if sum((file is not None, wizard, propose)) != 1:
        fail("say what from: --file FILE, --wizard, or --propose", code=EXIT_USAGE)
    if propose:
        _print_proposal(ctx, rack, budget)
        return
    if budget is not None or (file is not None and rack is not None):
        fail("--budget is for --propose, and a FILE says budget and rack itself", code=EXIT_USAGE)
    from esnode.power_orders.genesis_file import read_wish

    wish = None if file is None else read_wish(load_mapping(Path(file)))
    speaks = speaker(ctx, keys["operator_dir"], keys["cluster_name"], keys["socket_path"])
    look = look_around(speaks)
    if wish is None:
        from esnode.cli.power_wizard import ask_wish

        wish = ask_wish(look, rack)
    _found(speaks, look, wish, dry_run=dry_run, is_sure=is_sure, as_json=as_json, wait=wait)


def _found(
    speaks: "Speaker",
    look: Look,
    wish: "Wish",
    *,
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
    wait: str,
) -> None:
    """Show, ask, sign, watch."""
    from esnode.cli.power_previews import preview_genesis
    from esnode.power_orders.founding import plan_genesis

    plan = plan_genesis(wish, look.machines, look.charters)
    click.echo(preview_genesis(plan), err=as_json or not dry_run)
    if dry_run:
        return
    ask_first(f"Sign the genesis of {plan.founded.currency}?", is_sure=is_sure)
    tell(sign(speaks, look, plan.founded), as_json=as_json)
    currency = plan.founded.currency
    if not follow(speaks.door, wait, lambda power: enforcement(power, currency)):
        note(
            "note: not every slot is in force yet; `esnode power status --watch` shows how it goes"
        )


def enforcement(power: dict[str, Any], currency: "CurrencyId") -> tuple[bool, str]:
    """Whether every slot holds the promise, and which do not."""
    for one in power["currencies"]:
        if one["currency"] == currency:
            waiting = [
                f"{slot['slot']} {slot['state']}"
                for slot in one["slots"]
                if slot["state"] not in ENFORCED
            ]
            total = len(one["slots"])
            line = f"{total - len(waiting)} of {total} slots in force"
            return not waiting, f"{line}; {', '.join(waiting[:4])}" if waiting else line
    return False, "the agent takes the genesis over"


def load_mapping(path: Path) -> dict[str, object]:
    """The mapping that a file holds, by the end of its name."""
    try:
        raw = sys.stdin.buffer.read(FILE_BYTES_MAX) if str(path) == "-" else _read(path)
        text = raw.decode("utf-8")
    except OSError as error:
        fail(f"{path}: {error.strerror}", code=EXIT_USAGE)
    except UnicodeDecodeError:
        fail(f"{path}: is no text in UTF-8", code=EXIT_USAGE)
    if path.suffix in (".yaml", ".yml"):
        found = _yaml(path, text)
    else:
        try:
            found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            fail(f"{path}: {' '.join(str(error).split())}", code=EXIT_USAGE)
    if not isinstance(found, dict):
        fail(f"{path}: holds no rack, budget and slots", code=EXIT_USAGE)
    return found


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX)


def _yaml(path: Path, text: str) -> object:
    """YAML where its library is installed; nothing else of esnode needs it."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        fail(f"{path}: YAML needs `pip install pyyaml` here; or write TOML", code=EXIT_USAGE)
    try:
        found: object = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        fail(f"{path}: {' '.join(str(error).split())}", code=EXIT_USAGE)
    return found


def _print_proposal(ctx: click.Context, rack: str | None, budget: str | None) -> None:
    from esnode.client import ask
    from esnode.power_orders.genesis_text import write_proposal
    from esnode.power_orders.known import read_machines
    from esnode.power_orders.proposal import propose, read_own
    from esnode.power_orders.quantities import BadQuantity, read_watts

    try:
        watts = None if budget is None else read_watts(budget)
    except BadQuantity as bad:
        fail(f"--budget {bad}", code=EXIT_USAGE)
    door = reading_door(ctx)
    cluster = ask(door, "/v1/cluster", schema="esnode.cluster_status/")
    power = read_power(door)
    with reading_what(door.shown):
        machines, own = read_machines(cluster), read_own(power)
    proposal = propose(rack or str(power["rack"]), machines, own, budget_watts=watts)
    click.echo(write_proposal(proposal), nl=False)
