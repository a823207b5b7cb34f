"""A rack under a budget, as documents of an agent and as operators' records, for tests."""

from typing import Any

from cluster.identity.operator_records import OperatorRecord, Other, SignedRecord, log_root
from cluster.ids import ClusterId, NodeId, OperatorId
from cluster.rack.ledger.charter import Charter, read_charters
from cluster.rack.ledger.decrees import Decree, Founded, Slot, dynamic_watts, encode_decree
from cluster.rack.units import SHARES_TOTAL, CurrencyId, watts_of
from esnode.power_orders.known import Machine
from tests.cluster_documents import node, quantity

RACK = CurrencyId("rack:r01")
CLUSTER = ClusterId(bytes(16))


def node_id(number: int) -> NodeId:
    return NodeId(bytes([0xA0 + number]) * 16)


def machine(number: int, **more: Any) -> Machine:
    """gpu-01 and so on, alive in r01."""
    known: dict[str, Any] = {
        "node_id": node_id(number),
        "name": f"gpu-{number:02}",
        "rack": "r01",
        "state": "alive",
        "heard_seconds": 0.5,
        "is_asked": number == 1,
        "draw_watts": 2000.0,
        "gpu_draw_watts": 1200.0,
        "gpu_limit_watts": 5600.0,
        "gpu_count": 8,
    }
    return Machine(**(known | more))


def founded(count: int = 3, *, budget: int = 20_000, margin_ppm: int = 0) -> Founded:
    """Equal shares for so many nodes, and a switch in u40."""
    each, rest = divmod(SHARES_TOTAL, count)
    return Founded(
        currency=RACK,
        budget_watts=budget,
        margin_ppm=margin_ppm,
        slots=(
            *(
                Slot(name=f"u{number:02}", floor_watts=1000, node_id=node_id(number))
                for number in range(1, count + 1)
            ),
            Slot(name="u40", floor_watts=500, is_static=True),
            Slot(name="u41", floor_watts=1000),
        ),
        shares=tuple(
            (node_id(number), each + (rest if number == 1 else 0)) for number in range(1, count + 1)
        ),
    )


class Log:
    """Operators' records without keys: who signed is not what these tests ask."""

    def __init__(self) -> None:
        self.records: list[SignedRecord] = []

    def say(self, decree: Decree, *, after: SignedRecord | None = None) -> SignedRecord:
        kind, body = encode_decree(decree)
        before = after or (self.records[-1] if self.records else None)
        record = OperatorRecord(
            cluster_id=CLUSTER,
            sequence=1 if before is None else before.record.sequence + 1,
            previous=log_root(CLUSTER) if before is None else before.hash,
            statement=Other(kind=kind, body=body),
            signed_by=OperatorId(b"o" * 16),
            written_unix_seconds=len(self.records),
        )
        payload = b"%d " % len(self.records) + body
        signed = SignedRecord(record=record, payload=payload, signature=bytes(64))
        self.records.append(signed)
        return signed

    def charter(self) -> Charter:
        return read_charters(self.records)[RACK]


def charter_of(*decrees: Decree) -> Charter:
    log = Log()
    for decree in decrees:
        log.say(decree)
    return log.charter()


def slot_document(slot: str, number: int | None, **more: Any) -> dict[str, Any]:
    """A slot that enforces, but for what is handed in; without a number an empty one."""
    is_held = number is not None
    known: dict[str, Any] = {
        "slot": slot,
        "node": f"gpu-{number:02}" if number is not None else None,
        "node_id": node_id(number).hex() if number is not None else None,
        "floor_watts": 1000,
        "is_static": False,
        "state": "enforcing" if is_held else "empty",
        "share_watts": 6000 if is_held else None,
        "cap_watts": 5990 if is_held else 1000,
        "draw_watts": 3000 if is_held else None,
        "demand_watts": 4000 if is_held else None,
        "minimum_watts": 2000 if is_held else None,
        "priority": 1 if is_held else None,
        "version": 2 if is_held else None,
        "epoch": [1, 0] if is_held else None,
        "is_behind": False,
        "age_seconds": 0.4 if is_held else None,
        "why": "",
    }
    return known | more


def switch_document() -> dict[str, Any]:
    return slot_document("u40", None, is_static=True, state="static", floor_watts=500,
                         cap_watts=500, why="counted at its maximum")  # fmt: skip


def power_document(founding: Founded | None = None, **more: Any) -> dict[str, Any]:
    """What gpu-01 says of its rack; without a genesis it is ungoverned."""
    document: dict[str, Any] = {
        "schema": "esnode.power/1",
        "node": "gpu-01",
        "rack": "r01",
        "state": "ungoverned" if founding is None else "enforcing",
        "detail": "",
        "gate": {"is_open": True, "reason": ""},
        "cap": {
            "floor_watts": None if founding is None else 1000,
            "lowest_watts": 2400,
            "highest_watts": 7100,
            "wanted_watts": None if founding is None else 6000,
            "in_force_watts": None if founding is None else 5990,
            "bound_watts": None if founding is None else 5990,
            "draw_watts": 3000,
            "draw_source": "simulated",
            "demand_watts": None if founding is None else 4000,
            "reason": "" if founding is None else "shares of rack:r01",
            "cover_watts": 0,
            "throttle_watts": 0,
            "settle_seconds": 2.0,
            "is_settled": founding is not None,
            "is_refusing": False,
        },
        "devices": [
            {
                "device": f"GPU-{index}", "kind": "gpu", "index": index, "minimum_watts": 200,
                "maximum_watts": 700, "limit_watts": 500, "draw_watts": 350, "set_by": "esnode",
                "is_given_up": False, "refusal": "",
            }
            for index in range(8)
        ],
        "currencies": [] if founding is None else [currency_document(founding)],
        "alarms": [],
    }  # fmt: skip
    return document | more


def currency_document(founding: Founded, **more: Any) -> dict[str, Any]:
    shares = dict(founding.shares)
    shared = dynamic_watts(founding, founding.budget_watts)
    slots = []
    for number, (holder, held) in enumerate(shares.items(), start=1):
        assert holder == node_id(number)
        worth = 1000 + watts_of(held, shared)
        slots.append(
            slot_document(f"u{number:02}", number, share_watts=worth, cap_watts=worth - 10)
        )
    slots += [switch_document(), slot_document("u41", None)]
    known = {
        "currency": "rack:r01",
        "grade": "A",
        "grade_reason": "enforced and metered",
        "missing_slots": [],
        "outside_nodes": [],
        "budget_watts": founding.budget_watts,
        "margin_ratio": founding.margin_ppm / 1e6,
        "floors_watts": sum(slot.floor_watts for slot in founding.slots),
        "shared_watts": shared,
        "version": 2,
        "is_unanimous": True,
        "epoch": [1, 0],
        "closing": None,
        "caps_watts": sum(int(slot["cap_watts"]) for slot in slots),
        "draw_watts": 3000 * len(shares),
        "draw_known_count": len(shares),
        "stranded_watts": 0,
        "alarms": [],
        "slots": slots,
    }
    return known | more


def cluster_nodes(count: int, **states: str) -> list[dict[str, Any]]:
    """gpu-01 and so on in r01, as the cluster's document has them; `gpu_02="failed"`."""
    nodes = []
    for number in range(1, count + 1):
        name = f"gpu-{number:02}"
        state = states.get(name.replace("-", "_"), "alive")
        heard = 0.5 if state == "alive" else 300.0
        one = node(name, id=node_id(number).hex(), state=state, last_heard_seconds=heard,
                   is_asked=number == 1, draw=2000.0)  # fmt: skip
        one["gpus"] = one["gpus"] | {"draw_watts": quantity(1200.0)}
        nodes.append(one)
    return nodes
