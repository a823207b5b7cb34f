"""`esnode power budget set`: another budget for a rack.

Its own file because a cut stops work, so it is shown and asked about first. It must not know how
the nodes obey.
"""

from typing import Any

import click

from esnode.cli.cluster_operator import speaker, tell, with_orders
from esnode.cli.cluster_places import ask_first, note, tells_errors_in_one_line, with_yes
from esnode.cli.context import EXIT_USAGE, fail
from esnode.cli.power_speaker import follow, look_around, sign, tells_refusals, with_wait


@click.group()
def budget() -> None:
    """Change the budget of a rack.

    \b
    esnode power budget set r01 48kW
    """


@budget.command("set")
@click.argument("rack")
@click.argument("watts")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and sign nothing.")
@with_orders
@with_yes
@with_wait
@click.pass_context
@tells_errors_in_one_line
@tells_refusals
def set_(
    ctx: click.Context,
    /,
    rack: str,
    watts: str,
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
    wait: str,
    **keys: str | None,
) -> None:
    """Set what RACK may draw: WATTS as 52000 or 52kW.

    Shows each node's cap before and after. A budget below the floors is refused. One below what
    running work needs is not, but says whose work would be parked. Where the operators' log has
    forked, the lowest budget of its branches holds until this order settles it.

    RACK is a rack, or a currency by its whole name, e.g. feed-a:r01.

    \b
    esnode power budget set r01 48kW
    esnode power budget set r01 48kW --dry-run
    """
    from esnode.cli.power_previews import preview_budget
    from esnode.power_orders.budgets import find_charter, plan_budget
    from esnode.power_orders.known import currency_of
    from esnode.power_orders.quantities import BadQuantity, read_watts

    try:
        wanted = read_watts(watts)
    except BadQuantity as bad:
        fail(f"WATTS {bad}", code=EXIT_USAGE)
    speaks = speaker(ctx, keys["operator_dir"], keys["cluster_name"], keys["socket_path"])
    look = look_around(speaks)
    charter = find_charter(rack, look.charters, look.racks)
    plan = plan_budget(
        charter,
        wanted,
        known=currency_of(look.currencies, charter.currency),
        machines=look.machines,
        settles=look.other_ends,
    )
    names = {one.node_id: one.name for one in look.machines}
    click.echo(preview_budget(plan, names), err=as_json or not dry_run)
    if dry_run:
        return
    parks = f", which parks {len(plan.parked)} nodes" if plan.parked else ""
    question = f"Set the budget of {charter.currency} to {plan.new_watts:,} W{parks}?"
    ask_first(question, is_sure=is_sure)
    tell(sign(speaks, look, plan.decree), as_json=as_json)
    if currency_of(look.currencies, charter.currency) is None:
        note("note: the agent here is no member; how it goes is seen at one of the rack's")
        return
    currency, version = charter.currency, charter.version.sequence
    if not follow(speaks.door, wait, lambda power: obedience(power, currency, version)):
        note("note: not every node keeps the new budget yet; `esnode power status` shows which")


def obedience(power: dict[str, Any], currency: str, before: int) -> tuple[bool, str]:
    """Whether all nodes keep a budget that is newer than the one before."""
    for one in power["currencies"]:
        if one["currency"] != currency:
            continue
        newest = one["version"]
        if not isinstance(newest, int) or newest <= before:
            return False, "the agent takes the budget over"
        slots = [slot for slot in one["slots"] if isinstance(slot["version"], int)]
        behind = [slot for slot in slots if slot["is_behind"] or slot["version"] < newest]
        line = f"{len(slots) - len(behind)} of {len(slots)} nodes keep the new budget"
        names = ", ".join(str(slot["node"] or slot["slot"]) for slot in behind[:4])
        return not behind, f"{line}; not yet {names}" if behind else line
    return False, "the agent knows no such budget yet"
