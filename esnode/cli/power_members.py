"""`esnode power join` and `retire`: who holds a part of a rack's budget.

Its own file because both change the members of the ledger, and share how a node and its currencies
are found. It must not know when such an order is refused.
"""

from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_operator import speaker, tell, with_orders
from esnode.cli.cluster_places import ask_first, note, tells_errors_in_one_line, with_yes
from esnode.cli.context import EXIT_USAGE, fail
from esnode.cli.power_speaker import Look, follow, look_around, sign, tells_refusals, with_wait

if TYPE_CHECKING:
    from cluster.rack.ledger.charter import Charter
    from esnode.power_orders.known import Machine
    from esnode.power_orders.memberships import Newcomer


@click.command()
@click.argument("node")
@click.option("--slot", required=True, metavar="SLOT", help="Where it stands, e.g. u07.")
@click.option("--currency", metavar="NAME", help="Another constraint than the rack's own.")
@with_orders
@with_yes
@with_wait
@click.pass_context
@tells_errors_in_one_line
@tells_refusals
def join(
    ctx: click.Context,
    /,
    node: str,
    slot: str,
    currency: str | None,
    is_sure: bool,
    as_json: bool,
    wait: str,
    **keys: str | None,
) -> None:
    """Let NODE into a slot of a rack that has a budget.

    It begins with no shares: the floor of its slot is paid for already, and the others give it
    watts within seconds. Until then, and without a slot, a node of the rack is parked at its lowest
    cap.

    \b
    esnode power join gpu-17 --slot u07
    """
    from esnode.cli.power_previews import preview_join
    from esnode.power_orders.budgets import find_charter
    from esnode.power_orders.machines import find_machine
    from esnode.power_orders.memberships import Newcomer, plan_join

    speaks = speaker(ctx, keys["operator_dir"], keys["cluster_name"], keys["socket_path"])
    look = look_around(speaks)
    machine = find_machine(look.machines, node)
    charter = find_charter(currency or machine.rack, look.charters, look.racks)
    decree = plan_join(
        charter,
        Newcomer(machine=machine, slot=slot),
        known=look.known_of(charter.currency),
        machines=look.machines,
    )
    note(preview_join(decree, machine.name))
    ask_first(f"Let {machine.name} into slot {slot}?", is_sure=is_sure)
    tell(sign(speaks, look, decree), as_json=as_json)
    wanted, name = str(machine.node_id), machine.name
    if not follow(speaks.door, wait, lambda power: entry(power, charter.currency, wanted, name)):
        note(f"note: {name} does not enforce a cap yet; `esnode power explain {name}` says why")


def entry(power: dict[str, Any], currency: str, node_id: str, name: str) -> tuple[bool, str]:
    """Whether a newcomer enforces a cap."""
    for one in power["currencies"]:
        for slot in one["slots"] if one["currency"] == currency else ():
            if slot["node_id"] == node_id:
                state = str(slot["state"])
                return state in ("enforcing", "static"), f"{name} in slot {slot['slot']}: {state}"
    return False, f"{name} is not in its slot yet"


@click.command()
@click.argument("node")
@click.option("--powered-off", is_flag=True, help="Your word that the machine draws nothing.")
@click.option("--evidence", default="", metavar="TEXT", help="How you know; kept in the log.")
@click.option("--replace-with", metavar="NODE", help="Who comes in its stead.")
@click.option("--slot", metavar="SLOT", help="Where that one stands; else in the same slot.")
@click.option("--insist", is_flag=True, help="Although nodes that have to agree are not heard.")
@click.option("--currency", metavar="NAME", help="Another constraint than the rack's own.")
@with_orders
@with_yes
@with_wait
@click.pass_context
@tells_errors_in_one_line
@tells_refusals
def retire(
    ctx: click.Context,
    /,
    node: str,
    powered_off: bool,
    evidence: str,
    replace_with: str | None,
    slot: str | None,
    insist: bool,
    currency: str | None,
    is_sure: bool,
    as_json: bool,
    wait: str,
    **keys: str | None,
) -> None:
    """Give the watts of NODE, whose machine is off, to the others or to a newcomer.

    A node that is silent keeps its watts for ever: its hardware goes on holding its cap. Only your
    word that the machine is off sets them free, so look first: its BMC, its outlet, its lamps.
    Every node that stays has to agree; one that is away stops trading, not safety.

    \b
    esnode power retire gpu-07 --powered-off --evidence "outlet 7 switched off"
    esnode power retire gpu-07 --powered-off --replace-with gpu-17
    """
    from esnode.cli.power_previews import preview_retire
    from esnode.power_orders.budgets import find_charter
    from esnode.power_orders.memberships import plan_retire

    if not powered_off:
        fail(
            f"is the machine of {node} off? Look at its BMC or its outlet, and say --powered-off; "
            "silence proves nothing",
            code=EXIT_USAGE,
        )
    if slot is not None and replace_with is None:
        fail("--slot says where the NODE of --replace-with stands", code=EXIT_USAGE)
    speaks = speaker(ctx, keys["operator_dir"], keys["cluster_name"], keys["socket_path"])
    look = look_around(speaks)
    machine, rack = _who_goes(look, node)
    charter = find_charter(currency or rack, look.charters, look.racks)
    newcomer = _newcomer(look, charter, machine, replace_with, slot)
    plan = plan_retire(
        charter,
        machine,
        evidence=evidence,
        newcomer=newcomer,
        known=look.known_of(charter.currency),
        machines=look.machines,
        is_insisting=insist,
    )
    names = {one.node_id: one.name for one in look.machines}
    comes = {names.get(one, one.short): where for one, where in plan.decree.added}
    note(preview_retire(plan, comes))
    ask_first(f"Is {machine.name} off, and may its watts be given away?", is_sure=is_sure)
    tell(sign(speaks, look, plan.decree), as_json=as_json)
    number = plan.decree.epoch.number
    if not follow(speaks.door, wait, lambda power: closing(power, charter.currency, number)):
        note("note: the epoch is not closed yet; `esnode power status` names who is missing")


def closing(power: dict[str, Any], currency: str, before: int) -> tuple[bool, str]:
    """Whether the epoch of this number has ended."""
    for one in power["currencies"]:
        if one["currency"] == currency:
            if one["epoch"][0] > before:
                return True, f"epoch {one['epoch'][0]} has begun: the watts are with the others"
            absent = (one["closing"] or {}).get("absent") or ()
            waits = ", ".join(str(name) for name in absent[:4])
            return False, f"waiting for the word of {waits}" if waits else "the epoch is closing"
    return False, "the agent is no member any more"


def _who_goes(look: Look, text: str) -> "tuple[Machine, str]":
    """Among all that hold something anywhere, also those that gossip has forgotten."""
    from esnode.power_orders.known import Machine
    from esnode.power_orders.machines import find_machine

    met = {one.node_id for one in look.machines}
    forgotten = [
        Machine(
            node_id=slot.node_id,
            name=slot.node_id.short,
            rack=charter.currency.partition(":")[2],
            state="forgotten",
        )
        for charter in look.charters.values()
        for slot in charter.slots
        if slot.node_id is not None and slot.node_id not in met
    ]
    machine = find_machine([*look.machines, *forgotten], text)
    return machine, machine.rack


def _newcomer(
    look: Look, charter: "Charter", gone: "Machine", text: str | None, slot: str | None
) -> "Newcomer | None":
    from esnode.power_orders.machines import find_machine
    from esnode.power_orders.memberships import Newcomer

    if text is None:
        return None
    old = next((one.name for one in charter.slots if one.node_id == gone.node_id), None)
    where = slot or old
    if where is None:
        fail(f"{gone.name} stands in no slot; say --slot SLOT", code=EXIT_USAGE)
    return Newcomer(machine=find_machine(look.machines, text), slot=where)
