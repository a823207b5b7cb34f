"""A proposed rack as a TOML file with the reason for each figure, for an operator to edit.

Its own file because what it writes is read again by `genesis_file`, by people first. It must not
know where the proposal came from.
"""

from fractions import Fraction

from cluster.rack.ledger.decrees import MILLION
from esnode.power_orders.proposal import Proposal
from esnode.power_orders.quantities import percent_text

HEAD = """\
# The power of one rack: edit this, then `esnode power genesis --file THIS_FILE`.
# It is signed once. Budgets change later with `esnode power budget set`, slots are for ever.
"""
TAIL = """\
# A load without an agent (switches, pumps, a machine that cannot be capped) is charged in full:
# [[slots]]
# slot = "u40"
# static = true
# watts = 400
#
# An empty slot is charged its floor, so that a machine can come into it later:
# [[slots]]
# slot = "u41"
# floor = 1200
#
# Shares are equal unless slots have a weight (weight = 2) or a part of the whole (share = "25 %").
"""


def write_proposal(proposal: Proposal) -> str:
    """The file."""
    wish = proposal.wish
    rack = wish.currency.partition(":")[2]
    margin = percent_text(Fraction(wish.margin_ppm, MILLION))
    blocks = [
        HEAD,
        f'rack = "{rack}"\n'
        f"budget = {wish.budget_watts}  # watts; {proposal.budget_reason}\n"
        f'margin = "{margin}"  # nobody is given it: the error of the meters\n',
    ]
    for one in proposal.slots:
        maximum = "" if one.maximum_watts is None else f"; at most it draws {one.maximum_watts} W"
        blocks.append(
            "[[slots]]\n"
            f'slot = "{one.slot.name}"\n'
            f'node = "{one.slot.node}"\n'
            f"floor = {one.slot.floor_watts}  # {one.reason}{maximum}\n"
        )
    return "\n".join([*blocks, TAIL])
