"""The bodies, read back by prometheus_client's parsers and compared with what was meant."""

import gzip
import math
from dataclasses import replace

import pytest

from esnode.metrics import EVERYTHING, METRICS, PROFILES, Renderer, Selection, served_metrics
from esnode.metrics.render import KEPT_SELECTIONS, format_value
from esnode.readings.host import CpuReading
from esnode.snapshot import Snapshot
from tests.expositions import body_of, by_name, meant_by, samples_of, series, served
from tests.snapshots import (
    AWKWARD,
    CPU,
    gpu_uuid,
    mounted,
    rich_snapshot,
    rich_view,
    without_gpu,
)

SETS = [
    pytest.param((), False, id="canonical"),
    pytest.param(("esnode-core",), True, id="predecessor"),
    pytest.param(("esnode-core", "dcgm"), True, id="all"),
]


@pytest.mark.parametrize("is_openmetrics", [False, True], ids=["text", "openmetrics"])
@pytest.mark.parametrize(("aliases", "is_kubernetes"), SETS)
def test_a_body_read_back_says_what_the_table_says(
    aliases: tuple[str, ...], is_kubernetes: bool, is_openmetrics: bool
) -> None:
    metrics = served_metrics(aliases, is_kubernetes=is_kubernetes)
    view = rich_view()

    body = body_of(view, metrics=metrics, is_openmetrics=is_openmetrics)

    assert samples_of(body, is_openmetrics=is_openmetrics) == dict(meant_by(view, metrics))
    assert body.endswith("# EOF\n") == is_openmetrics


def test_openmetrics_carries_units_and_families_without_suffix() -> None:
    body = body_of(rich_view(), is_openmetrics=True)

    assert "# TYPE esnode_cpu_seconds counter\n# UNIT esnode_cpu_seconds seconds\n" in body
    assert "# TYPE esnode_gpu info\n" in body
    assert "# TYPE esnode_gpu_power_watts gauge\n# UNIT esnode_gpu_power_watts watts\n" in body
    assert 'esnode_cpu_seconds_total{mode="user"} 400.0\n' in body


def test_a_counter_of_dcgm_has_no_type_in_openmetrics_which_wants_another_name() -> None:
    metrics = served_metrics(("dcgm",), is_kubernetes=False)

    openmetrics = body_of(rich_view(), metrics=metrics, is_openmetrics=True)
    text = body_of(rich_view(), metrics=metrics)

    assert "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n" in openmetrics
    assert "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n" in text


def test_the_text_format_knows_no_info_so_it_is_a_gauge_of_one() -> None:
    body = body_of(rich_view())

    assert "# TYPE esnode_agent_build_info gauge\n" in body
    assert 'esnode_agent_build_info{version="0.1.0",python="3.11.7"} 1\n' in body


def test_awkward_label_values_survive_the_way_there_and_back() -> None:
    samples = served(rich_view())

    assert samples[series("esnode_agent_tag_info", tag="remark", value=AWKWARD)] == 1.0


def test_a_name_that_is_not_unicode_costs_nothing_but_its_own_looks() -> None:
    odd = rich_snapshot()
    odd = replace(odd, filesystems=(mounted("/mnt/\udcff"),))

    body = body_of(rich_view(odd))

    assert 'mountpoint="/mnt/\\udcff"' in body


def test_what_is_unknown_is_absent_and_never_zero() -> None:
    empty = rich_view(Snapshot(taken_at_seconds=0.0, sequence=0))
    nothing = replace(empty, cluster=None, rack_power=None, jobs=None, control=None)

    samples = served(nothing)

    names = {name for name, _ in samples}
    assert {name for name in names if not name.startswith("esnode_agent_")} == {
        "esnode_degradation_score"
    }


def test_one_unknown_value_takes_only_itself_away() -> None:
    partial = replace(rich_snapshot(), cpu=replace(CPU, load5=None))

    samples = served(rich_view(partial))

    assert by_name(samples, "esnode_cpu_load1") == [1.5]
    assert by_name(samples, "esnode_cpu_load5") == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_finite_number_is_never_served(value: float) -> None:
    renderer = Renderer(METRICS)
    renderer.render(rich_view(with_cpu(CpuReading(load1=1.0))))

    body = renderer.render(rich_view(with_cpu(CpuReading(load1=value, load5=2.0)))).body()

    assert by_name(samples_of(body.decode()), "esnode_cpu_load1") == []
    assert by_name(samples_of(body.decode()), "esnode_cpu_load5") == [2.0]
    later = renderer.render(rich_view(with_cpu(CpuReading(load1=1.0)))).body()
    assert by_name(samples_of(later.decode()), "esnode_cpu_load1") == [1.0]


def with_cpu(cpu: CpuReading) -> Snapshot:
    return Snapshot(taken_at_seconds=0.0, sequence=1, cpu=cpu)


def test_gzip_holds_the_same_body() -> None:
    exposition = Renderer(METRICS).render(rich_view())

    for is_openmetrics in (False, True):
        packed = exposition.body(is_openmetrics=is_openmetrics, is_gzip=True)
        assert gzip.decompress(packed) == exposition.body(is_openmetrics=is_openmetrics)


def test_a_body_is_made_once_and_shared() -> None:
    exposition = Renderer(METRICS).render(rich_view())

    assert exposition.body(is_gzip=True) is exposition.body(is_gzip=True)
    assert exposition.body() is exposition.body(selection=EVERYTHING)


def test_ever_new_selections_do_not_fill_the_memory() -> None:
    exposition = Renderer(METRICS).render(rich_view())

    for number in range(10 * KEPT_SELECTIONS):
        exposition.body(selection=Selection(groups=frozenset({"gpu", str(number)})))

    assert len(exposition._bodies) <= 4 * KEPT_SELECTIONS


@pytest.mark.parametrize(
    ("selection", "groups"),
    [
        pytest.param(Selection(groups=frozenset({"gpu"})), {"gpu"}, id="one-collector"),
        pytest.param(PROFILES["power-only"], {"power", "ipmi"}, id="power-only"),
        pytest.param(Selection(groups=frozenset()), set(), id="nothing"),
    ],
)
def test_a_selection_leaves_the_other_collectors_out(
    selection: Selection, groups: set[str]
) -> None:
    body = Renderer(METRICS).render(rich_view()).body(selection=selection).decode()

    names = {name for name, _ in samples_of(body)}
    assert names == {metric.name for metric in METRICS if metric.group in groups}


def test_the_basic_selection_holds_what_an_overview_needs() -> None:
    body = Renderer(METRICS).render(rich_view()).body(selection=PROFILES["basic"]).decode()

    names = {name for name, _ in samples_of(body)}
    assert {"esnode_gpu_power_watts", "esnode_node_power_watts", "esnode_cpu_load1"} <= names
    assert names == {metric.name for metric in METRICS if metric.is_basic}


def test_a_gpu_that_left_takes_all_of_its_series_along() -> None:
    metrics = served_metrics(("esnode-core", "dcgm"), is_kubernetes=True)
    renderer = Renderer(metrics)
    gone = gpu_uuid(3)

    before = renderer.render(rich_view()).body().decode()
    after = renderer.render(rich_view(without_gpu(rich_snapshot(), gone))).body().decode()

    assert gone in before
    assert gone not in after
    assert gpu_uuid(4) in after


def test_the_lines_of_devices_that_left_are_forgotten() -> None:
    renderer = Renderer(METRICS)
    for number in range(100):
        snapshot = replace(rich_snapshot(), filesystems=(mounted(f"/mnt/{number}"),))
        renderer.render(rich_view(snapshot))

    family = next(
        one for one in renderer._families if one.metric.name == "esnode_filesystem_size_bytes"
    )
    assert len(family._lines) <= 20


def test_of_two_series_with_the_same_labels_the_first_is_served() -> None:
    below = mounted("/data")
    above = replace(below, size_bytes=1)
    snapshot = replace(rich_snapshot(), filesystems=(below, above))

    samples = served(rich_view(snapshot))

    assert by_name(samples, "esnode_filesystem_size_bytes") == [500e9]


def test_a_renderer_that_remembers_says_the_same_as_a_new_one() -> None:
    renderer = Renderer(METRICS)
    first, second = rich_snapshot(), replace(rich_snapshot(), cpu=replace(CPU, load1=0.25))
    renderer.render(rich_view(first))

    kept = renderer.render(rich_view(second)).body()

    assert kept == Renderer(METRICS).render(rich_view(second)).body()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(True, "1", id="true"),
        pytest.param(False, "0", id="false"),
        pytest.param(81559 << 20, "85520809984", id="whole-bytes"),
        pytest.param(0.1, "0.1", id="shortest-that-reads-back"),
        pytest.param(1e22, "1e+22", id="large"),
    ],
)
def test_a_value_is_the_shortest_text_that_reads_back(value: float, text: str) -> None:
    assert format_value(value) == text


def test_per_core_and_per_process_series_are_opt_in() -> None:
    plain = replace(rich_view(), is_per_core=False, is_per_process=False)

    names = {name for name, _ in served(plain)}

    assert "esnode_cpu_core_utilization_ratio" not in names
    assert "esnode_gpu_process_memory_used_bytes" not in names
    assert len(by_name(served(rich_view()), "esnode_gpu_process_memory_used_bytes")) == 7


def test_processes_that_are_not_kept_are_counted() -> None:
    assert by_name(served(rich_view()), "esnode_gpu_processes") == [12.0] * 7
