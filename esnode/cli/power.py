"""`esnode power`: the list of its commands. Each one's code is loaded when it is called."""

import click

from esnode.cli.lazy import LazyCommands

COMMANDS = {
    "status": "esnode.cli.power_status:status",
    "genesis": "esnode.cli.power_genesis:genesis",
    "budget": "esnode.cli.power_budget:budget",
    "join": "esnode.cli.power_members:join",
    "retire": "esnode.cli.power_members:retire",
    "explain": "esnode.cli.power_explain:explain",
    "gate": "esnode.cli.power_gate:gate",
}
"""Where each command lives."""

SUMMARIES = {
    "status": "Show budget, caps, draw and slots of this agent's rack.",
    "genesis": "Put a rack under a budget: slots, floors, who begins with what.",
    "budget": "Change the budget of a rack.",
    "join": "Let a node into a slot of a rack that has a budget.",
    "retire": "Give the watts of a machine that is off to the others.",
    "explain": "Say why the cap of a node is what it is.",
    "gate": "Wait until this machine may start work: for units and prologs.",
}


@click.group(cls=LazyCommands, places=COMMANDS, summaries=SUMMARIES)
def power() -> None:
    """Keep a rack below its power budget; see and change how.

    There is no controller. An operator signs once what a rack may draw and who stands where. From
    then on each node holds a part of it, keeps its hardware below that part, and trades with the
    others as their work changes. What fails keeps its cap.

    \b
    In an esnode cluster, with the operator's keys at hand:
      esnode power genesis --propose > r01.toml    what the nodes suggest; edit it
      esnode power genesis --file r01.toml         shows what will happen, asks, signs
      esnode power status --watch                  until grade A or B: then the rack is protected
    Later:
      esnode power budget set r01 48kW
      esnode power retire gpu-07 --powered-off --replace-with gpu-17
    At each start of a machine, before any work:
      esnode power gate

    Exit codes: 0 protected or done, 1 unprotected or refused, 2 wrong usage, 3 agent not reachable,
    4 not allowed.
    """
