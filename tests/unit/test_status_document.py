"""The status document: what it keeps of the predecessor, and that unknown is never zero."""

import json
from dataclasses import replace

from esnode.readings.sample import SourceStatus
from esnode.snapshot import GpuState, Snapshot
from esnode.status import NO_NODE_POWER, describe, is_healthy
from tests.samples import bare_gpu
from tests.snapshots import gpu_uuid, rich_snapshot

PREDECESSORS_FIELDS = {
    "healthy", "load_avg_1m", "load_avg_5m", "load_avg_15m", "uptime_seconds",
    "last_scrape_unix_ms", "last_errors", "node_power_watts", "cpu_package_power_watts",
    "cpu_temperatures", "gpus", "cpu_cores", "cpu_util_percent", "mem_total_bytes",
    "mem_used_bytes", "mem_free_bytes", "swap_used_bytes", "disk_root_total_bytes",
    "disk_root_used_bytes", "primary_nic", "net_rx_bytes_per_sec", "net_tx_bytes_per_sec",
    "net_drops_per_sec", "app_tokens_per_sec", "app_tokens_per_watt", "disk_degraded",
    "network_degraded", "swap_degraded", "degradation_score",
}  # fmt: skip
GPU_FIELDS = {
    "uuid", "gpu", "vendor", "identity", "topo", "health", "temperature_celsius", "power_watts",
    "util_percent", "memory_total_bytes", "memory_used_bytes", "fan_percent", "clock_sm_mhz",
    "clock_mem_mhz", "thermal_throttle", "power_throttle",
}  # fmt: skip


def document_of(snapshot: Snapshot) -> dict[str, object]:
    document = describe(
        snapshot, hostname="node-07", unix_seconds=1_800_000_000.5, uptime_seconds=60.0
    )
    found: dict[str, object] = json.loads(json.dumps(document, allow_nan=False))
    return found


def test_the_predecessors_clients_find_their_fields() -> None:
    document = document_of(rich_snapshot())

    assert set(document) >= PREDECESSORS_FIELDS
    gpus = document["gpus"]
    assert isinstance(gpus, list)
    assert set(gpus[0]) >= GPU_FIELDS


def test_figures_are_those_of_the_snapshot_in_the_documents_units() -> None:
    document = document_of(rich_snapshot())

    expected = {
        "schema": "esnode.status/1",
        "hostname": "node-07",
        "last_scrape_unix_ms": 1_800_000_000_500,
        "cpu_util_percent": 29.0,
        "cpu_cores": 2,
        "mem_used_bytes": 24e9,
        "disk_root_used_bytes": 300e9,
        "primary_nic": "eth0",
        "net_drops_per_sec": 3.0,
        "node_power_watts": 5200.0,
        "node_power_envelope_exceeded": True,
        "app_tokens_per_sec": 20.0,
        "degradation_score": 3,
        "disk_degraded": True,
        "network_degraded": True,
        "swap_degraded": False,
    }
    assert {name: document[name] for name in expected} == expected


def test_a_gpu_is_told_in_percent_and_megahertz_with_its_fastest_fan() -> None:
    gpus = document_of(rich_snapshot())["gpus"]
    assert isinstance(gpus, list)

    first, last = gpus[0], gpus[-1]

    assert (first["util_percent"], first["fan_percent"]) == (57.0, 45.0)
    assert (first["clock_sm_mhz"], first["clock_mem_mhz"]) == (1980.0, 2619.0)
    assert (first["thermal_throttle"], first["power_throttle"]) == (True, True)
    assert last == {
        "uuid": gpu_uuid(7),
        "gpu": "7",
        "up": False,
        "reason": "GPU is lost",
        "age_seconds": None,
    }


def test_of_an_empty_node_every_figure_is_null_or_left_out() -> None:
    document = document_of(Snapshot(taken_at_seconds=0.0, sequence=0))

    zeros = {
        name
        for name, value in document.items()
        if value == 0 and not isinstance(value, bool) and value != []
    }
    assert zeros == {"degradation_score"}
    assert document["gpus"] == []
    assert document["healthy"] is True
    judged = ("disk_degraded", "network_degraded", "swap_degraded")
    assert [document[name] for name in judged] == [None, None, None]
    assert document["absent"] == {
        "node_power": [{"what": "node_power", "reason": NO_NODE_POWER}],
    }


def test_throttle_reasons_that_are_not_told_are_not_none() -> None:
    reading = bare_gpu(0, throttle_reasons=None)
    state = GpuState(uuid=gpu_uuid(0), is_up=True, index=0, reading=reading)
    idle = replace(state, reading=replace(reading, throttle_reasons=()))

    gpus = document_of(Snapshot(taken_at_seconds=0.0, sequence=0, gpus=(state, idle)))["gpus"]

    assert isinstance(gpus, list)
    assert [gpu["health"]["throttle_reasons"] for gpu in gpus] == [None, []]


def test_what_cannot_be_provided_is_listed_with_its_reason() -> None:
    absent = document_of(rich_snapshot())["absent"]

    assert isinstance(absent, dict)
    assert absent["cpu"] == [{"what": "something", "reason": "not on this machine"}]
    assert absent["gpu"][0]["what"] == "visible_devices:12"
    assert {"what": "ipmi", "reason": "no ipmitool"} in absent["ipmi"]
    assert "app:http://127.0.0.1:8000/metrics" in absent


def test_sources_tell_their_age_and_how_long_they_hang() -> None:
    sources = document_of(rich_snapshot())["sources"]
    assert isinstance(sources, list)

    stalled = sources[1]

    assert (stalled["target"], stalled["state"]) == ("/mnt/nfs", "stalled")
    assert (stalled["age_seconds"], stalled["stalled_seconds"]) == (100.0, 10.0)


def test_at_most_ten_errors_are_listed() -> None:
    failing = tuple(
        SourceStatus(
            collector="filesystem",
            target=f"/{n}",
            state="failed",
            reason="gone",
            last_error_at_seconds=997.0,
        )
        for n in range(20)
    )

    document = document_of(replace(rich_snapshot(), sources=failing))

    errors = document["last_errors"]
    assert isinstance(errors, list)
    assert len(errors) == 10
    assert errors[0] == {
        "collector": "filesystem:/0",
        "message": "gone",
        "unix_ms": 1_799_999_997_500,
    }


def test_a_machine_with_a_lost_gpu_is_not_healthy_even_when_it_was_lost_from_the_start() -> None:
    answering = replace(rich_snapshot(), sources=())

    assert answering.gpu_inventory is not None
    assert answering.gpu_inventory.lost
    assert not is_healthy(answering)


def test_a_machine_that_lacks_something_is_healthy_and_one_whose_source_hangs_is_not() -> None:
    lacking = replace(
        rich_snapshot(),
        sources=(SourceStatus(collector="ipmi", state="unavailable"),),
        gpu_inventory=None,
    )

    assert is_healthy(lacking)
    assert not is_healthy(rich_snapshot())
