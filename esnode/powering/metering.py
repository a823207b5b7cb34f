"""What the whole rack draws, by the word of its nodes, for the emergency path.

Its own file because who reads the meter is a decision: the two live members of lowest id, so that
one excess is said by two and not by seventy. It must not know what follows from it.
"""

from cluster.ids import NodeId
from cluster.rack.ledger.charter import Charter
from cluster.rack.meter import MeterReading, NodeDraw, check_plausible, sum_of_nodes
from cluster.rack.trading import ROW_ALIVE_SECONDS
from cluster.rack.units import CurrencyId
from esnode.powering.heard import Heard

READERS = 2


def rack_reading(
    heard: Heard, currency: CurrencyId, own: NodeId, now: float
) -> MeterReading | None:
    """The rack's draw, if it is this node's turn to read it and it is to be believed."""
    charter = heard.charters.get(currency)
    if charter is None or own not in _readers(heard, currency, now):
        return None
    reading = _sum(heard, charter, now)
    return reading if reading.is_usable else None


def _readers(heard: Heard, currency: CurrencyId, now: float) -> list[NodeId]:
    live = (
        node_id
        for (one, node_id), fact in heard.rows(now).items()
        if one == currency and fact.age_seconds <= ROW_ALIVE_SECONDS
    )
    return sorted(live)[:READERS]


def _sum(heard: Heard, charter: Charter, now: float) -> MeterReading:
    mates, rows = heard.mates(now), heard.rows(now)
    draws: list[NodeDraw] = []
    static_watts, most_watts = 0, 0
    for slot in charter.slots:
        mate = None if slot.node_id is None else mates.get(slot.node_id)
        most_watts += slot.floor_watts
        if mate is None:
            static_watts += slot.floor_watts if slot.is_static else 0
            continue
        row = rows.get((charter.currency, slot.node_id)) if slot.node_id is not None else None
        most_watts += 0 if row is None else row.row.wants.maximum_watts
        draws.append(
            NodeDraw(
                watts=mate.draw_watts,
                age_seconds=mate.age_seconds,
                is_estimated=mate.is_draw_estimated,
            )
        )
    return check_plausible(sum_of_nodes(draws, static_watts), most_watts=most_watts)
