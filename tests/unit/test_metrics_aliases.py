"""The predecessor's and DCGM's names: units, factors and labels."""

from dataclasses import replace

import pytest

from esnode.metrics import View, served_metrics
from esnode.metrics.aliases import times
from esnode.snapshot import GpuState, Snapshot
from tests.expositions import Series, by_name, series, served
from tests.samples import bare_gpu
from tests.snapshots import gpu_identity, gpu_uuid, rich_snapshot, rich_view


@pytest.fixture(scope="module")
def samples() -> dict[Series, float]:
    return served(rich_view(), served_metrics(("esnode-core", "dcgm"), is_kubernetes=True))


GPU_1 = {"uuid": gpu_uuid(1), "index": "1"}


@pytest.mark.parametrize(
    ("expected_series", "value"),
    [
        pytest.param(series("esnode_cpu_load_avg_1m"), 1.5, id="load"),
        pytest.param(series("esnode_cpu_usage_percent", core="cpu0"), 29.0, id="core-percent"),
        pytest.param(series("esnode_cpu_time_seconds_total", state="user"), 400.0, id="cpu-time"),
        pytest.param(series("esnode_numa_cpu_usage_percent", node="1"), 50.0, id="numa-percent"),
        pytest.param(
            series("esnode_disk_io_time_ms_total", device="nvme0n1"), 3125.0, id="milliseconds"
        ),
        pytest.param(series("esnode_disk_io_avg_latency_ms", device="nvme0n1"), 62.5, id="latency"),
        pytest.param(series("esnode_disk_total_bytes", mount="/"), 500e9, id="disk-total"),
        pytest.param(series("esnode_disk_used_bytes", mount="/"), 325e9, id="disk-used"),
        pytest.param(series("esnode_disk_free_bytes", mount="/"), 175e9, id="disk-free"),
        pytest.param(
            series("esnode_disk_degradation_busy", device="nvme0n1"), 1.0, id="raised-flag"
        ),
        pytest.param(
            series("esnode_disk_degradation_latency", device="nvme0n1"), 0.0, id="clear-flag"
        ),
        pytest.param(
            series("esnode_network_degradation_drops", iface="eth0"), 1.0, id="network-drops"
        ),
        pytest.param(series("esnode_network_tcp_retrans_total"), 11.0, id="retransmissions"),
        pytest.param(
            series("esnode_cpu_package_power_watts", package="intel-rapl:1"), 201.0, id="package"
        ),
        pytest.param(series("esnode_app_tokens_per_sec"), 20.0, id="tokens"),
        pytest.param(series("esnode_agent_running"), 1.0, id="running"),
        pytest.param(
            series("esnode_agent_errors_total", collector="filesystem", target="/mnt/nfs"),
            3.0,
            id="errors",
        ),
        pytest.param(
            series("esnode_agent_scrape_duration_seconds", collector="cpu", target=""),
            0.001,
            id="duration",
        ),
        pytest.param(
            series("esnode_gpu_utilization_percent", **GPU_1), 57.0, id="percent-without-dust"
        ),
        pytest.param(series("esnode_gpu_clock_sm_mhz", **GPU_1), 1980.0, id="megahertz"),
        pytest.param(
            series("esnode_gpu_fan_speed_percent", **GPU_1), 45.0, id="the-faster-of-two-fans"
        ),
        pytest.param(
            series("esnode_gpu_throttle_reason", reason="thermal", **GPU_1), 1.0, id="thermal"
        ),
        pytest.param(
            series("esnode_gpu_throttle_reason", reason="other", **GPU_1), 0.0, id="no-other"
        ),
        pytest.param(
            series("esnode_gpu_temperature_celsius", **GPU_1), 65.0, id="our-name-with-its-index"
        ),
        pytest.param(
            series("esnode_gpu_fan_speed_ratio", fan="0", **GPU_1), 0.4, id="index-before-the-rest"
        ),
        pytest.param(
            series("esnode_gpu_utilization_percent_compat", gpu="nvidia.com/gpu", index="1"),
            57.0,
            id="kubernetes",
        ),
        pytest.param(
            series("esnode_gpu_degradation_ecc", uuid=gpu_uuid(0), index="0"), 1.0, id="ecc"
        ),
        pytest.param(series("esnode_gpu_degradation_ecc", **GPU_1), 0.0, id="ecc-of-a-healthy-one"),
    ],
)
def test_the_predecessors_families_have_their_old_units(
    samples: dict[Series, float], expected_series: Series, value: float
) -> None:
    assert samples[expected_series] == value


DCGM_LABELS = {
    "gpu": "1",
    "UUID": gpu_uuid(1),
    "pci_bus_id": "00000000:11:00.0",
    "device": "nvidia1",
    "modelName": "NVIDIA H100 80GB HBM3",
    "Hostname": "node-07",
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("SM_CLOCK", 1980.0, id="megahertz"),
        pytest.param("MEM_CLOCK", 2619.0, id="memory-megahertz"),
        pytest.param("GPU_TEMP", 65.0, id="celsius"),
        pytest.param("POWER_USAGE", 600.5, id="watts"),
        pytest.param("TOTAL_ENERGY_CONSUMPTION", 123_456_789.0, id="millijoules"),
        pytest.param("GPU_UTIL", 57.0, id="percent"),
        pytest.param("MEM_COPY_UTIL", 25.0, id="memory-percent"),
        pytest.param("FB_USED", 40000.0, id="mebibytes"),
        pytest.param("FB_FREE", 41080.0, id="free-mebibytes"),
        pytest.param("CLOCK_THROTTLE_REASONS", float(0x4 | 0x40), id="bit-mask"),
        pytest.param("POWER_MGMT_LIMIT", 640.0, id="limit-in-force"),
        pytest.param("CORRECTABLE_REMAPPED_ROWS", 3.0, id="rows"),
        pytest.param("ROW_REMAP_FAILURE", 0.0, id="row-failure"),
        pytest.param("PCIE_REPLAY_COUNTER", 4.0, id="replays"),
    ],
)
def test_dcgms_fields_have_its_units_and_labels(
    samples: dict[Series, float], field: str, value: float
) -> None:
    assert samples[series(f"DCGM_FI_DEV_{field}", **DCGM_LABELS)] == value


def test_a_gpu_that_does_not_answer_has_no_alias_values(samples: dict[Series, float]) -> None:
    assert len(by_name(samples, "esnode_gpu_utilization_percent")) == 7
    assert len(by_name(samples, "DCGM_FI_DEV_GPU_UTIL")) == 7
    assert samples[series("esnode_gpu_up", uuid=gpu_uuid(7), index="7")] == 0.0


def test_what_nothing_is_known_of_is_not_said_to_be_well() -> None:
    reading = bare_gpu(0, throttle_reasons=None)
    state = GpuState(uuid=gpu_uuid(0), is_up=True, index=0, reading=reading)
    snapshot = Snapshot(taken_at_seconds=0.0, sequence=0, gpus=(state,))

    samples = served(View(snapshot=snapshot), served_metrics(("esnode-core",), is_kubernetes=False))

    flags = {name for (name, _) in samples if "degradation" in name}
    assert flags == {"esnode_degradation_score"}


def test_the_cores_of_two_sockets_are_told_apart(samples: dict[Series, float]) -> None:
    assert samples[series("esnode_cpu_core_power_watts", core="intel-rapl:0:0")] == 150.0
    assert samples[series("esnode_cpu_core_power_watts", core="intel-rapl:1:0")] == 151.0
    assert len(by_name(samples, "esnode_cpu_core_power_watts")) == 2


def test_the_identity_keeps_its_one_index_label(samples: dict[Series, float]) -> None:
    infos = [labels for (name, labels) in samples if name == "esnode_gpu_info"]

    assert len(infos) == 8
    assert all(dict(labels)["index"] == dict(labels)["uuid"][-1] for labels in infos)


def test_a_gpu_without_a_bus_has_an_empty_label_and_not_the_word_none() -> None:
    first, *others = rich_snapshot().gpus
    assert first.reading is not None
    bare = replace(
        first, reading=replace(first.reading, identity=replace(gpu_identity(0), pci_bus_id=None))
    )
    snapshot = replace(rich_snapshot(), gpus=(bare, *others))

    samples = served(rich_view(snapshot), served_metrics(("dcgm",), is_kubernetes=False))

    found = [dict(labels) for (name, labels) in samples if name == "DCGM_FI_DEV_GPU_TEMP"]
    assert found[0]["pci_bus_id"] == ""


@pytest.mark.parametrize(
    ("value", "factor", "expected"),
    [
        pytest.param(0.57, 100, 57.0, id="no-dust"),
        pytest.param(None, 100, None, id="unknown"),
        pytest.param(7, 1, 7, id="same-unit"),
    ],
)
def test_a_factor_changes_the_unit_and_nothing_else(
    value: float | None, factor: float, expected: float | None
) -> None:
    assert times(value, factor) == expected
