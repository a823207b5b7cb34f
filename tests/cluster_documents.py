"""Documents about a cluster as an agent serves them, for tests of what is shown of them."""

from collections.abc import Mapping
from typing import Any

CLUSTER_ID = "7c1e" + "0" * 28


def quantity(
    value: float | None, *, age: float | None = 1.0, source: str = "nvml", estimated: bool = False
) -> dict[str, Any]:
    known = value is not None
    return {
        "value": value,
        "age_seconds": age if known else None,
        "source": source if known else None,
        "estimated": estimated,
    }


UNKNOWN = quantity(None)


def node(
    name: str, *, rack: str = "r01", state: str = "alive", draw: float | None = 3210.0, **more: Any
) -> dict[str, Any]:
    """A node that reports everything, but for what is handed in."""
    number = sum(map(ord, name))
    return {
        "id": f"{number:06x}" + "5" * 26,
        "name": name,
        "rack": rack,
        "state": state,
        "is_asked": False,
        "last_heard_seconds": 1.2,
        "state_seconds": 3600.0,
        "address": f"10.0.0.{number % 250}:7947",
        "observed_address": None,
        "version": "0.4.0",
        "epoch": 3,
        "sequence": 4182,
        "power": {
            "draw_watts": quantity(draw),
            "cap_watts": quantity(3400.0, source="cap"),
            "limit_watts": quantity(3500.0),
        },
        "gpus": {
            "total": 8,
            "healthy": 8,
            "draw_watts": quantity(2400.0),
            "cap_watts": quantity(3500.0),
            "limit_watts": quantity(5600.0),
            "utilization_ratio": quantity(0.92),
            "memory_used_ratio": quantity(0.71),
            "temperature_max_celsius": quantity(81.0),
        },
        "jobs": {"running": 6},
        "score": 0.93,
        "flags": [],
        "accusers": [],
        "flaps_ratio": 0.0,
        "round_trip_seconds": 0.0004,
        "certificate": {
            "serial": f"{number:x}abc",
            "ends_at": "2028-11-30T12:00:00Z",
            "roles": ["power", "work"],
            "validity": "current",
        },
        **more,
    }


def silent_node(name: str, **more: Any) -> dict[str, Any]:
    """A node of which nothing is known but that it is there."""
    known: dict[str, Any] = {
        "last_heard_seconds": None,
        "address": None,
        "version": None,
        "power": dict.fromkeys(("draw_watts", "cap_watts", "limit_watts"), UNKNOWN),
        "gpus": {
            "total": None,
            "healthy": None,
            "draw_watts": UNKNOWN,
            "cap_watts": UNKNOWN,
            "limit_watts": UNKNOWN,
            "utilization_ratio": UNKNOWN,
            "memory_used_ratio": UNKNOWN,
            "temperature_max_celsius": UNKNOWN,
        },
        "jobs": {"running": None},
        "score": None,
        "round_trip_seconds": None,
    }
    return node(name, **(known | more))


def counts(*states: str) -> dict[str, int]:
    names = ("alive", "degraded", "suspect", "failed", "left", "removed")
    return {"total": len(states), **{name: states.count(name) for name in names}}


def rack(rack_id: str, *states: str, **more: Any) -> dict[str, Any]:
    return {
        "id": rack_id,
        "state": "ok",
        "speaker": "n01",
        "source": "detail",
        "age_seconds": 2.0,
        "nodes": counts(*states),
        "power": {
            "budget_watts": quantity(14_000.0, source="operator"),
            "cap_watts": quantity(14_000.0),
            "draw_watts": quantity(12_900.0),
            "headroom_watts": quantity(1100.0),
            "stranded_watts": quantity(None),
        },
        "gpus": {"total": 32, "busy": 30, "idle": 2, "unhealthy": 0},
        "temperature_max_celsius": quantity(84.0),
        **more,
    }


def warning(code: str, severity: str, subject: str, text: str) -> dict[str, Any]:
    return {
        "code": code,
        "severity": severity,
        "subject": subject,
        "text": text,
        "since_seconds": 360.0,
    }


def status_document(
    *nodes: Mapping[str, Any], state: str = "healthy", **more: Any
) -> dict[str, Any]:
    """The cluster of these nodes."""
    states = [str(one["state"]) for one in nodes]
    return {
        "schema": "esnode.cluster_status/1",
        "generated_at": "2026-11-30T12:04:31Z",
        "asked": {"id": "a" * 32, "name": "n03", "rack": "r01"},
        "cluster": {
            "id": CLUSTER_ID,
            "name": "prod-a",
            "state": state,
            "view": {
                "digest": "4182ab90cd12ef34",
                "members": len(nodes),
                "agreeing": 11,
                "asked": 12,
            },
            "nodes": counts(*states),
            "versions": {"0.4.0": 11, "0.3.9": 1},
            "power": {
                "budget_watts": quantity(None),
                "cap_watts": quantity(42_000.0),
                "draw_watts": quantity(38_200.0),
                "headroom_watts": quantity(3800.0),
                "stranded_watts": quantity(None),
            },
            "gpus": {"total": 96, "busy": 81, "idle": 12, "unhealthy": 3},
            "jobs": {"running": 63, "migrating": 2, "held": 1, "queued": 4},
        },
        "racks": [],
        "nodes": list(nodes),
        "warnings": [],
        **more,
    }


def small_cluster() -> dict[str, Any]:
    """Three racks' worth of everything that a screen has to show."""
    return status_document(
        node("n01", flags=["capped"], is_asked=True),
        node(
            "n05",
            rack="r02",
            state="suspect",
            draw=2900.0,
            last_heard_seconds=14.0,
            flags=["stale"],
            accusers=["n01", "n03"],
        ),
        silent_node("n09", rack="r02", state="failed", last_heard_seconds=360.0, version="0.3.9"),
        state="degraded",
        racks=[
            rack("r01", "alive", "alive", "alive", "alive", state="ok"),
            rack(
                "r02",
                "alive",
                "suspect",
                "failed",
                "left",
                state="degraded",
                source="summary",
                power={
                    "budget_watts": UNKNOWN,
                    "cap_watts": quantity(14_000.0),
                    "draw_watts": quantity(9800.0, estimated=True, age=31.0),
                    "headroom_watts": quantity(4200.0, estimated=True),
                    "stranded_watts": UNKNOWN,
                },
                gpus={"total": 32, "busy": 20, "idle": 4, "unhealthy": 8},
            ),
        ],
        warnings=[
            warning("node-suspect", "warning", "n05", "n05 does not answer n01 and n03"),
            warning("node-failed", "critical", "n09", "no answer for 6 minutes"),
        ],
    )
