"""Bodies of `/metrics` read back by prometheus_client's two parsers."""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from esnode.metrics import METRICS, Metric, Renderer, View

Series = tuple[str, tuple[tuple[str, str], ...]]
"""Name and sorted labels."""


def body_of(
    view: View, *, metrics: Sequence[Metric] = METRICS, is_openmetrics: bool = False
) -> str:
    exposition = Renderer(metrics).render(view)
    return exposition.body(is_openmetrics=is_openmetrics).decode()


def samples_of(body: str, *, is_openmetrics: bool = False) -> dict[Series, float]:
    """Every sample; a series that comes twice fails the test."""
    parse = parse_openmetrics if is_openmetrics else parse_text
    samples: dict[Series, float] = {}
    for family in parse(body):
        for sample in family.samples:
            # The text parser adds _total to every counter, as if OpenMetrics had been read.
            name = sample.name.removesuffix("_total") if "DCGM" in sample.name else sample.name
            found = (name, tuple(sorted(sample.labels.items())))
            assert found not in samples, f"served twice: {found}"
            samples[found] = sample.value
    return samples


def served(view: View, metrics: Sequence[Metric] = METRICS) -> dict[Series, float]:
    return samples_of(body_of(view, metrics=metrics))


def series(name: str, /, **labels: str) -> Series:
    return (name, tuple(sorted(labels.items())))


def by_name(samples: Mapping[Series, float], name: str) -> list[float]:
    return [value for (found, _), value in samples.items() if found == name]


def meant_by(view: View, metrics: Sequence[Metric]) -> Iterator[tuple[Series, float]]:
    """What the table says, without the renderer."""
    for metric in metrics:
        for labels, value in metric.read(view):
            if value is not None:
                pairs = dict(zip(metric.labels, labels, strict=True))
                yield series(metric.name, **pairs), float(value)
