"""What the rules remember, as one JSON object, and back.

Pure. Its own file because it is read by the next version of this program and by people: names are
only added to. Times are written as ages, since a clock may begin anew with the machine. It must not
know where the object is kept.
"""

import math
from collections.abc import Mapping, Sequence

from esnode.acting.leases import Lease, LeaseKind
from esnode.acting.rules import HOUR_SECONDS, OWNER_SECONDS, Condition, Memory, Pause

SCHEMA = "esnode.control_memory/1"

Document = dict[str, object]


class BadMemory(ValueError):
    """It is no such object; one line."""


def encode_memory(memory: Memory, leases: Sequence[Lease], now: float) -> Document:
    """The object to keep."""
    owner_at = memory.owner_at_seconds
    return {
        "schema": SCHEMA,
        "last_number": memory.last_number,
        "pauses": {
            name: {"reason": one.reason, "by": one.by, "at_unix_seconds": one.at_unix_seconds}
            for name, one in memory.pauses.items()
        },
        "tripped": dict(memory.tripped),
        "spent_ages_seconds": {
            name: [round(now - at, 3) for at in times] for name, times in memory.spent.items()
        },
        "owner": memory.owner,
        "owner_age_seconds": None if owner_at is None else round(now - owner_at, 3),
        "conditions": [
            {
                "feature": feature,
                "rule": rule,
                "target": target,
                "acted_age_seconds": round(now - one.acted_at_seconds, 3),
                "ineffective_count": one.ineffective_count,
                "ticket": one.ticket,
            }
            for (feature, rule, target), one in memory.conditions.items()
            if one.acted_at_seconds is not None
        ],
        "leases": [
            {
                "id": one.id,
                "feature": one.feature,
                "kind": one.kind.value,
                "target": one.target,
                "original": one.original,
                "changed": one.changed,
                "left_seconds": round(one.until_seconds - now, 3),
            }
            for one in leases
        ],
    }


def decode_memory(
    document: object, *, now: float, elapsed_seconds: float
) -> tuple[Memory, tuple[Lease, ...]]:
    """What was kept, `elapsed_seconds` ago.

    Raises:
        BadMemory: it is not what `encode_memory` makes.
    """
    whole = _object(document, "the file")
    if whole.get("schema") != SCHEMA:
        raise BadMemory(f"schema: {SCHEMA} is needed")
    then = now - max(0.0, elapsed_seconds)
    memory = Memory(last_number=int(_number(whole, "last_number")))
    for name, value in _object(whole.get("pauses"), "pauses").items():
        pause = _object(value, f"pauses.{name}")
        memory.pauses[name] = Pause(
            reason=_text(pause, "reason"),
            by=_text(pause, "by"),
            at_unix_seconds=_number(pause, "at_unix_seconds"),
        )
    tripped = _object(whole.get("tripped"), "tripped")
    memory.tripped = {name: _text(tripped, name) for name in tripped}
    for name, ages in _object(whole.get("spent_ages_seconds"), "spent_ages_seconds").items():
        spent = [then - _finite(age, name) for age in _list(ages, name)]
        memory.spent[name] = [at for at in spent if now - at < HOUR_SECONDS]
    memory.owner = _text(whole, "owner")
    if whole.get("owner_age_seconds") is not None:
        at = then - _number(whole, "owner_age_seconds")
        memory.owner_at_seconds = at if now - at < OWNER_SECONDS else None
    for value in _list(whole.get("conditions"), "conditions"):
        _take_condition(memory, _object(value, "conditions"), now=now, then=then)
    leases = _list(whole.get("leases"), "leases")
    return memory, tuple(_lease(_object(one, "leases"), then) for one in leases)


def _take_condition(memory: Memory, one: Mapping[str, object], *, now: float, then: float) -> None:
    key = (_text(one, "feature"), _text(one, "rule"), _text(one, "target"))
    memory.conditions[key] = Condition(
        since_seconds=now,
        seen_at_seconds=now,
        acted_at_seconds=then - _number(one, "acted_age_seconds"),
        ineffective_count=int(_number(one, "ineffective_count")),
        ticket=_text(one, "ticket"),
    )


def _lease(one: Mapping[str, object], then: float) -> Lease:
    try:
        kind = LeaseKind(_text(one, "kind"))
    except ValueError:
        raise BadMemory(f"leases: no kind {_text(one, 'kind')[:40]!r}") from None
    return Lease(
        id=_text(one, "id"),
        feature=_text(one, "feature"),
        kind=kind,
        target=_text(one, "target"),
        original=_text(one, "original"),
        changed=_text(one, "changed"),
        until_seconds=then + _number(one, "left_seconds"),
    )


def _object(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadMemory(f"{what}: an object is needed")
    return value


def _list(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise BadMemory(f"{what}: a list is needed")
    return value


def _text(of: Mapping[str, object], name: str) -> str:
    value = of.get(name)
    if not isinstance(value, str):
        raise BadMemory(f"{name}: a text is needed")
    return value


def _number(of: Mapping[str, object], name: str) -> float:
    return _finite(of.get(name), name)


def _finite(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadMemory(f"{name}: a number is needed")
    return float(value)
