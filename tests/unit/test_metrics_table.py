"""Naming rules of the families, and that each of them can be served at all."""

import dataclasses
import re
from collections import Counter

import pytest

from esnode.metrics import GROUPS, METRICS, PROFILES, Metric, served_metrics
from esnode.metrics.aliases import DCGM, ESNODE_CORE, KUBERNETES
from esnode.metrics.render import UNITS, unit_of
from esnode.snapshot import Snapshot
from tests.snapshots import rich_snapshot, rich_view

EVERY_SET = served_metrics(("esnode-core", "dcgm"), is_kubernetes=True)

WRONG_UNITS = re.compile(
    r"_(ms|us|ns|milliseconds|minutes|hours|kb|mb|gb|kib|mib|gib|percent|mhz|khz|mw|kw|mj|uj|"
    r"fahrenheit|kelvin|bits)(_|$)"
)
"""Not base units (prometheus.io, practices/naming)."""


def ids(metric: Metric) -> str:
    return metric.name


@pytest.mark.parametrize("metric", METRICS, ids=ids)
def test_a_canonical_name_follows_prometheus_own_rules(metric: Metric) -> None:
    assert re.fullmatch(r"esnode_[a-z][a-z0-9]*(_[a-z0-9]+)*", metric.name)
    assert not metric.name.endswith(("_count", "_bucket", "_sum", "_created"))
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.name.endswith("_info") == (metric.kind == "info")
    assert not WRONG_UNITS.search(metric.name)
    assert not re.search(r"_(gauge|counter|histogram|summary)(_|$)", metric.name)


@pytest.mark.parametrize("metric", EVERY_SET, ids=ids)
def test_a_help_text_is_one_whole_sentence(metric: Metric) -> None:
    assert re.match(r"[A-Z0-9]", metric.help)
    assert metric.help.endswith(".")
    assert "\n" not in metric.help


@pytest.mark.parametrize("metric", METRICS, ids=ids)
def test_labels_are_in_snake_case_and_not_reserved(metric: Metric) -> None:
    for label in metric.labels:
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", label)
    assert not set(metric.labels) & {"job", "instance", "le", "quantile"}
    assert len(set(metric.labels)) == len(metric.labels)


def test_no_name_is_given_twice_in_all_sets_together() -> None:
    counts = Counter(metric.name for metric in EVERY_SET)

    assert [name for name, count in counts.items() if count > 1] == []


def test_no_openmetrics_family_covers_the_sample_names_of_another() -> None:
    suffixes = {"counter": ("_total", "_created"), "info": ("_info",), "gauge": ("",)}
    names: Counter[str] = Counter()
    for metric in EVERY_SET:
        reserved = {metric.family, metric.name}
        reserved |= {metric.family + suffix for suffix in suffixes[metric.kind]}
        names.update(reserved)

    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("metric", METRICS, ids=ids)
def test_the_unit_line_is_the_last_word_of_the_family(metric: Metric) -> None:
    unit = unit_of(metric)

    assert unit is None or (unit in UNITS and metric.family.endswith(f"_{unit}"))


@pytest.mark.parametrize("metric", EVERY_SET, ids=ids)
def test_every_family_gives_a_sample_of_a_rich_node(metric: Metric) -> None:
    samples = list(metric.read(rich_view()))

    known = [(labels, value) for labels, value in samples if value is not None]
    assert known, "a row that can never be served"
    for labels, _ in known:
        assert len(labels) == len(metric.labels)
        assert all(isinstance(label, str) for label in labels)


@pytest.mark.parametrize("metric", EVERY_SET, ids=ids)
def test_a_family_of_an_empty_node_claims_nothing(metric: Metric) -> None:
    empty = Snapshot(taken_at_seconds=0.0, sequence=0)
    view = dataclasses.replace(
        rich_view(), snapshot=empty, cluster=None, rack_power=None, jobs=None, control=None
    )

    known = [value for _, value in metric.read(view) if value is not None]

    always = {"esnode_degradation_score", "esnode_agent_running"}
    assert not known or metric.group == "agent" or metric.name in always


def test_the_rich_node_of_these_tests_leaves_no_field_out() -> None:
    empty = [path for path, value in fields_of(rich_snapshot(), "") if value in (None, (), "")]

    expected_on_the_lost_gpu = {
        "gpus.reading", "gpus.age_seconds", "gpus.energy_joules_total", "gpus.energy_source",
        "gpus.throttle_seconds_total",
    }  # fmt: skip
    optional = {
        "sources.target", "sources.reason", "sources.duration_seconds",
        "sources.last_success_at_seconds", "sources.last_error_at_seconds",
        "sources.stalled_since_seconds",
        "ipmi.sensors.temperature_celsius", "ipmi.sensors.fan_speed_rpm",
        "ipmi.power_sensors.chip_driver", "gpus.reason",
    }  # fmt: skip
    assert set(empty) <= expected_on_the_lost_gpu | optional


def fields_of(value: object, path: str) -> list[tuple[str, object]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            found
            for field in dataclasses.fields(value)
            for found in fields_of(getattr(value, field.name), f"{path}.{field.name}".strip("."))
        ]
    if isinstance(value, tuple) and value:
        return [found for item in value for found in fields_of(item, path)]
    return [(path, value)]


def test_groups_and_profiles_name_only_what_there_is() -> None:
    assert GROUPS == (
        "cpu", "memory", "filesystem", "disk", "network", "numa", "power", "ipmi", "gpu", "app",
        "agent", "cluster", "rack_power", "jobs", "control",
    )  # fmt: skip
    for selection in PROFILES.values():
        assert selection.groups is None or selection.groups <= set(GROUPS)
        assert any(selection.takes(metric) for metric in METRICS)


def test_the_alias_sets_are_served_only_when_asked_for() -> None:
    assert served_metrics((), is_kubernetes=False) == METRICS
    names = {metric.name for metric in served_metrics(("dcgm",), is_kubernetes=False)}
    assert names == {metric.name for metric in (*METRICS, *DCGM)}
    names = {metric.name for metric in served_metrics(("esnode-core",), is_kubernetes=True)}
    assert names == {metric.name for metric in (*METRICS, *ESNODE_CORE, *KUBERNETES)}


@pytest.mark.parametrize("metric", ESNODE_CORE, ids=ids)
def test_an_alias_names_a_successor_that_exists(metric: Metric) -> None:
    match = re.fullmatch(r"Alias of the predecessor; use (\w+)\.", metric.help)

    assert match is not None
    assert match.group(1) in {metric.name for metric in METRICS} | {"up"}
