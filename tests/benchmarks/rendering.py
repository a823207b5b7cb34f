"""Making the body of a tick, beside prometheus_client, and making very many."""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from esnode.metrics import Metric, Renderer, View, served_metrics
from tests.benchmarks.imagined import ImaginedNode
from tests.benchmarks.measuring import Row, count_samples, median, memory_mib, seconds_per_call

SPEC = "h100x16"
ALIASES = ("esnode-core", "dcgm")
SOAK_TICKS = 10_000

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def measure(*, is_quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        yield from _render(Path(name), calls=20 if is_quick else 100)
    with tempfile.TemporaryDirectory() as name:
        yield from _soak(Path(name), ticks=2_000 if is_quick else SOAK_TICKS)


class _Ready:
    """Families that were made before, for prometheus_client to write out."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Family]:
        return self._families


def _render(folder: Path, *, calls: int) -> Iterator[Row]:
    node = ImaginedNode(folder, SPEC)
    table = served_metrics(ALIASES, is_kubernetes=True)
    views = [node.tick(1.0) for _ in range(10)]
    renderer = Renderer(table)
    number = 0

    def ours() -> bytes:
        nonlocal number
        number += 1
        return renderer.render(views[number % len(views)]).body()

    body = ours()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Ready(parse_text(body.decode())))
    theirs = seconds_per_call(lambda: generate_latest(registry), calls=max(2, calls // 10)) * 1000
    yield Row(
        what=f"render a tick of {count_samples(body)} samples (peer: prometheus_client)",
        unit="ms",
        ours=seconds_per_call(ours, calls=calls) * 1000,
        peer=theirs,
        most=3.0,
    )
    _check_meaning(table, views[number % len(views)], renderer)


def _check_meaning(table: Iterable[Metric], view: View, renderer: Renderer) -> None:
    """Both formats, read by prometheus_client, hold the samples of the table and no others."""
    wanted: Samples = {}
    for metric in table:
        for labels, value in metric.read(view):
            if value is not None:
                pairs = tuple(sorted(zip(metric.labels, labels, strict=True)))
                wanted[metric.name.removesuffix("_total"), pairs] = float(value)
    exposition = renderer.render(view)
    text = exposition.body().decode()
    open_text = exposition.body(is_openmetrics=True).decode()
    again = CollectorRegistry(auto_describe=False)
    again.register(_Ready(parse_text(text)))
    for how, families in (
        ("text", parse_text(text)),
        ("OpenMetrics", parse_openmetrics(open_text)),  # type: ignore[no-untyped-call]  # theirs
        ("prometheus_client's own writing", parse_text(generate_latest(again).decode())),
    ):
        found = _samples(families)
        difference = set(found.items()) ^ set(wanted.items())
        if difference:
            raise SystemExit(f"{how}: {len(difference)} samples differ: {list(difference)[:4]}")
    print(f"rendering: {len(wanted)} samples equal in text, OpenMetrics and prometheus_client")


def _samples(families: Iterable[Family]) -> Samples:
    """Without `_total`, which prometheus_client's parser adds to DCGM's counters."""
    found = {}
    for family in families:
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            found[sample.name.removesuffix("_total"), labels] = float(sample.value)
    return found


def _soak(folder: Path, *, ticks: int) -> Iterator[Row]:
    node = ImaginedNode(folder, "h100x8")
    renderer = Renderer(served_metrics((), is_kubernetes=False))
    marks = {}
    spent = []
    for number in range(1, ticks + 1):
        started = time.perf_counter()
        renderer.render(node.tick()).body()
        spent.append(time.perf_counter() - started)
        if number in (1000, ticks):
            marks[number] = memory_mib_of_self()
    print(
        f"soak: {ticks} ticks; RSS {marks[1000]:.1f} MiB after 1000, {marks[ticks]:.1f} MiB after "
        f"{ticks}"
    )
    yield Row(
        what=f"growth of RSS from tick 1000 to {ticks}",
        unit="MiB",
        ours=marks[ticks] - marks[1000],
        most=1.0,
    )
    yield Row(
        what="one tick of 8 GPUs: read, fold, render",
        unit="ms",
        ours=median(spent) * 1000,
    )


def memory_mib_of_self() -> float:
    return memory_mib(os.getpid())[0]
