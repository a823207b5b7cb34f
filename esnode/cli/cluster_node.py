"""One node in full, for `esnode cluster status --node NAME`.

Its own file because it is a list of facts, not a table. It must not know where the node came from.
"""

from collections.abc import Mapping
from typing import Any

from esnode.cli.cluster_text import (
    Painter,
    Units,
    celsius,
    count,
    figure,
    find,
    long_watts,
    of_total,
    percent,
    printable,
    quantity,
    short_duration,
)
from esnode.cli.text import UNKNOWN


def render_node(node: Mapping[str, Any], *, units: Units, paint: Painter) -> str:
    """Everything that the agent that was asked knows of a node."""
    state = printable(node["state"])
    since = short_duration(node.get("state_seconds"))
    rows = [
        ("node", f"{printable(node['name'])}{'  (asked)' if node.get('is_asked') else ''}"),
        ("id", printable(node["id"])),
        ("rack", printable(node["rack"])),
        ("state", paint(state, state) + (f" for {since}" if since != UNKNOWN else "")),
        ("last heard", _ago(node.get("last_heard_seconds"))),
        ("address", _address(node)),
        ("round trip", _milliseconds(node.get("round_trip_seconds"))),
        ("version", printable(node.get("version"))),
        ("epoch", f"{count(node.get('epoch'))}, record {count(node.get('sequence'))}"),
        *((f"{what}", _watts(node, name, units)) for what, name in _POWERS),
        ("gpus", _gpus(node)),
        ("jobs", count(find(node, "jobs", "running"))),
        ("score", _plain_number(node.get("score"))),
        ("flags", ", ".join(map(printable, node.get("flags") or [])) or UNKNOWN),
        ("accused by", ", ".join(map(printable, node.get("accusers") or [])) or "nobody"),
        ("flaps", _plain_number(node.get("flaps_ratio"))),
        ("certificate", _certificate(node)),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


_POWERS = (("draw", "draw_watts"), ("cap", "cap_watts"), ("limit", "limit_watts"))


def _watts(node: Mapping[str, Any], name: str, units: Units) -> str:
    given = find(node, "power", name)
    text = quantity(given, lambda value: long_watts(value, units), is_last_known=_is_silent(node))
    if text == UNKNOWN:
        return text
    source, age = find(given, "source"), short_duration(find(given, "age_seconds"))
    parts = [printable(source)] if source else []
    parts += [f"{age} old"] if age != UNKNOWN else []
    parts += ["estimated"] if find(given, "estimated") is True else []
    return f"{text}  ({', '.join(parts)})" if parts else text


def _is_silent(node: Mapping[str, Any]) -> bool:
    return node["state"] not in ("alive", "degraded")


def _gpus(node: Mapping[str, Any]) -> str:
    gpus = node.get("gpus") or {}
    healthy = of_total(gpus.get("healthy"), gpus.get("total"))
    if healthy == UNKNOWN:
        return UNKNOWN
    parts = [f"{healthy} healthy"]
    for what, name, write, unit in (
        ("utilization", "utilization_ratio", percent, " %"),
        ("memory", "memory_used_ratio", percent, " %"),
        ("hottest", "temperature_max_celsius", celsius, " C"),
    ):
        text = quantity(gpus.get(name), write, is_last_known=_is_silent(node))
        parts.append(f"{what} {text}{unit if text != UNKNOWN else ''}")
    return ", ".join(parts)


def _address(node: Mapping[str, Any]) -> str:
    told, observed = node.get("address"), node.get("observed_address")
    if observed and told and observed != told:
        return f"{printable(told)} announced, {printable(observed)} observed"
    return printable(told or observed)


def _certificate(node: Mapping[str, Any]) -> str:
    certificate = node.get("certificate") or {}
    if not certificate:
        return UNKNOWN
    roles = ",".join(map(printable, certificate.get("roles") or [])) or "none"
    return (
        f"{printable(certificate.get('serial'))}, {printable(certificate.get('validity'))} until "
        f"{printable(certificate.get('ends_at'))}, roles {roles}"
    )


def _ago(value: object) -> str:
    text = short_duration(value)
    return text if text == UNKNOWN else f"{text} ago"


def _milliseconds(value: object) -> str:
    seconds = figure(value)
    return UNKNOWN if seconds is None else f"{seconds * 1000:.1f} ms"


def _plain_number(value: object) -> str:
    number = figure(value)
    return UNKNOWN if number is None else f"{number:.2f}".rstrip("0").rstrip(".")
