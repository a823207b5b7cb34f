"""`esnode cluster`: the list of its commands. Each one's code is loaded when it is called."""

import click

from esnode.cli.lazy import LazyCommands

COMMANDS = {
    "init": "esnode.cli.cluster_begin:init",
    "invite": "esnode.cli.cluster_begin:invite",
    "join": "esnode.cli.cluster_member:join",
    "status": "esnode.cli.cluster_status:status",
    "members": "esnode.cli.cluster_members:members",
    "rack": "esnode.cli.cluster_members:rack",
    "events": "esnode.cli.cluster_events:events",
    "leave": "esnode.cli.cluster_member:leave",
    "renew": "esnode.cli.cluster_member:renew",
    "approve": "esnode.cli.cluster_operator:approve",
    "remove": "esnode.cli.cluster_operator:remove",
    "forget": "esnode.cli.cluster_operator:forget",
    "revoke": "esnode.cli.cluster_operator:revoke",
    "operator": "esnode.cli.cluster_operators:operator",
    "log": "esnode.cli.cluster_operators:log",
    "show-certificate": "esnode.cli.cluster_certificate:show_certificate",
}
"""Where each command lives."""

SUMMARIES = {
    "init": "Make a cluster: its keys, this machine as first node.",
    "invite": "Print a token that lets machines into a rack.",
    "join": "Make this machine a node, or come back after leave.",
    "status": "Show the cluster, its racks and its nodes.",
    "members": "List the members with their addresses.",
    "rack": "Show one rack and its nodes.",
    "events": "Show what has happened to members; --follow goes on.",
    "leave": "Take this machine out of its cluster, in good order.",
    "renew": "Give this node a new certificate; its key stays.",
    "approve": "Let in a node that waits for an operator's word.",
    "remove": "Retire a node that is gone; an invite brings it back.",
    "forget": "Free the name of a machine that was reimaged.",
    "revoke": "Withdraw trust in a node's key, or in one certificate.",
    "operator": "List those who may give orders; add and remove one.",
    "log": "Show what operators have said to the cluster.",
    "show-certificate": "Show what a certificate of this machine says.",
}


@click.group(cls=LazyCommands, places=COMMANDS, summaries=SUMMARIES)
def cluster() -> None:
    """Make a cluster of several agents; see and run it from any of them.

    There is no server: the agents talk to each other, and each of them answers.

    \b
    On the first machine, where an agent runs:
      esnode cluster init lab                      keys, and this machine as the first node
      esnode cluster invite --rack r01 --ttl 24h   prints a token: one line, a secret
    On each further machine:
      esnode cluster join < token                  the agent may run or not
    On any of them:
      esnode cluster status

    Orders go through the socket in the agent's state folder: they are for root, the agent's user
    and the group esnode. Exit codes: 0 healthy, 1 degraded or failed, 2 wrong usage or no cluster,
    3 agent not reachable, 4 not allowed, 5 this side is cut off from the rest.
    """
