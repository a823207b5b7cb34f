"""From a snapshot to the bodies that scrapers get, in text and OpenMetrics, plain and gzip.

prometheus_client renders 2000 samples in 24.5 ms; keeping each series' prefix and last line does it
in about 1 ms, so a tick's body is made once and shared by all scrapers. Both formats share the
sample lines and differ in their headers alone.
"""

import gzip
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from esnode.metrics.model import Labels, Metric, Value, View

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

GZIP_LEVEL = 4
"""Level 6 takes twice the time for 2 % fewer bytes on such bodies."""

KEPT_SELECTIONS = 16
"""Bodies of this many filters are kept per tick; more are rendered anew."""

UNITS = ("seconds", "bytes", "watts", "joules", "celsius", "hertz", "ratio", "grams")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which families a scraper wants."""

    groups: frozenset[str] | None = None
    """Collectors; ``None`` is all."""
    is_basic: bool = False

    def takes(self, metric: Metric) -> bool:
        """Whether the family is wanted."""
        if self.is_basic and not metric.is_basic:
            return False
        return self.groups is None or metric.group in self.groups


EVERYTHING = Selection()


def escape_label(text: str) -> str:
    """A label value as the exposition formats want it."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def escape_help(text: str, *, is_openmetrics: bool) -> str:
    """A help text as the format wants it; OpenMetrics also escapes quotes."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if is_openmetrics else text


def format_value(value: float | int | bool) -> str:
    """The shortest text that reads back as the same number."""
    if value is True:
        return "1"
    if value is False:
        return "0"
    return repr(value)


def unit_of(metric: Metric) -> str | None:
    """The OpenMetrics unit, which must be the family's last word."""
    last = metric.family.rpartition("_")[2]
    return last if last in UNITS and metric.kind != "info" else None


def _header(metric: Metric, *, is_openmetrics: bool) -> str:
    text = escape_help(metric.help, is_openmetrics=is_openmetrics)
    if is_openmetrics:
        unit = unit_of(metric)
        unit_line = f"# UNIT {metric.family} {unit}\n" if unit else ""
        # A counter's samples must end in _total there, which DCGM's do not.
        is_foreign = metric.kind == "counter" and not metric.name.endswith("_total")
        kind = "unknown" if is_foreign else metric.kind
        return f"# HELP {metric.family} {text}\n# TYPE {metric.family} {kind}\n{unit_line}"
    kind = "gauge" if metric.kind == "info" else metric.kind
    return f"# HELP {metric.name} {text}\n# TYPE {metric.name} {kind}\n"


class _Line:
    """One series: its text up to the value, and what was rendered last."""

    __slots__ = ("prefix", "round", "text", "value")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.value: Value = None
        self.text = ""
        self.round = 0


class _Family:
    """One family with its headers and the lines it rendered last."""

    __slots__ = ("_lines", "_round", "headers", "metric")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.headers = (
            _header(metric, is_openmetrics=False),
            _header(metric, is_openmetrics=True),
        )
        self._lines: dict[Labels, _Line] = {}
        self._round = 0

    def render(self, view: View) -> str:
        """All sample lines; empty when nothing is known.

        Of two samples with the same labels (a controller that names two sensors alike, a mount on
        top of another) the first is served: scrapers refuse a series that comes twice.
        """
        known = self._lines
        self._round += 1
        out: list[str] = []
        for labels, value in self.metric.read(view):
            if value is None:
                continue
            line = known.get(labels)
            if line is None:
                line = known[labels] = _Line(self._prefix(labels))
            elif line.round == self._round:
                continue
            if line.value is None or line.value != value:
                if isinstance(value, float) and not math.isfinite(value):
                    continue  # a NaN is a bug upstream or a sensor that lies: absent, not served
                line.value = value
                line.text = f"{line.prefix}{format_value(value)}\n"
            line.round = self._round
            out.append(line.text)
        if len(known) > 2 * len(out) + 16:  # series of devices that left
            self._lines = {}
        return "".join(out)

    def _prefix(self, labels: Labels) -> str:
        if not labels:
            return f"{self.metric.name} "
        pairs = ",".join(
            f'{name}="{escape_label(value)}"'
            for name, value in zip(self.metric.labels, labels, strict=True)
        )
        return f"{self.metric.name}{{{pairs}}} "


class Renderer:
    """Renders views of one table; keeps lines between ticks, so one per agent."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._families = [_Family(metric) for metric in metrics]

    def render(self, view: View) -> "Exposition":
        """The exposition of one tick."""
        return Exposition(
            tuple(
                (family.metric, family.headers, lines)
                for family in self._families
                if (lines := family.render(view))
            )
        )


class Exposition:
    """One tick's bodies, each made when first asked for and then kept."""

    def __init__(self, blocks: Iterable[tuple[Metric, tuple[str, str], str]]) -> None:
        self._blocks = tuple(blocks)
        self._bodies: dict[tuple[Selection, bool, bool], bytes] = {}

    def body(
        self,
        *,
        is_openmetrics: bool = False,
        is_gzip: bool = False,
        selection: Selection = EVERYTHING,
    ) -> bytes:
        """The body in one format and encoding."""
        key = (selection, is_openmetrics, is_gzip)
        kept = self._bodies.get(key)
        if kept is not None:
            return kept
        if is_gzip:
            plain = self.body(is_openmetrics=is_openmetrics, selection=selection)
            made = gzip.compress(plain, GZIP_LEVEL, mtime=0)
        else:
            made = self._plain(is_openmetrics, selection)
        if len(self._bodies) < 4 * KEPT_SELECTIONS:
            self._bodies[key] = made
        return made

    def _plain(self, is_openmetrics: bool, selection: Selection) -> bytes:
        parts: list[str] = []
        for metric, headers, lines in self._blocks:
            if selection.takes(metric):
                parts.append(headers[is_openmetrics])
                parts.append(lines)
        if is_openmetrics:
            parts.append("# EOF\n")
        # A name that is not Unicode (a mount point of odd bytes) must not cost the whole body.
        return "".join(parts).encode("utf-8", "backslashreplace")
