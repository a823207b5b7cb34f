"""The table: which figure of which scenario is a line, and what it is to be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.benchmarks.measuring import median

Values = list[float | None]
Results = dict[tuple[str, int], dict[str, dict[str, Values]]]
"""By scenario and number of nodes, then by side (`ours`, `serf`), then by figure."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One figure of one scenario."""

    scenario: str
    figure: str
    what: str
    unit: str = "s"
    most: float | None = None
    most_by_count: Mapping[int, float] = field(default_factory=dict)
    least: float | None = None
    most_ratio: float | None = None
    """Of the medians."""
    is_worst: bool = False
    """The target holds for every run, not for the median."""

    def target(self, count: int) -> tuple[float | None, str]:
        most = self.most_by_count.get(count, self.most)
        words = []
        if self.least is not None:
            words.append(f">= {self.least:g}")
        if most is not None:
            words.append(f"<= {most:g}")
        if self.most_ratio is not None:
            words.append(f"<= {self.most_ratio:g} x serf")
        return most, ", ".join(words)

    def is_met(self, count: int, ours: Values, peer: Values) -> bool | None:
        most, words = self.target(count)
        if not words:
            return None
        if any(one is None for one in ours):
            return False
        found = [one for one in ours if one is not None]
        checked = max(found) if self.is_worst else median(found)
        checks = [True]
        if most is not None:
            checks.append(checked <= most)
        if self.least is not None:
            checks.append(min(found) >= self.least)
        theirs = [one for one in peer if one is not None]
        if self.most_ratio is not None:
            if not theirs:
                return None
            checks.append(median(found) <= self.most_ratio * median(theirs))
        return all(checks)


LINES = (
    Line(
        scenario="join",
        figure="all see all",
        what="mass join, all see all",
        most=3.0,
        is_worst=True,
    ),
    Line(scenario="crash", figure="first suspect", what="killed, host refuses: first suspect"),
    Line(
        scenario="crash",
        figure="first failed",
        what="killed, host refuses: first failed",
        most_by_count={10: 3.0, 50: 3.5, 100: 4.0},
    ),
    Line(scenario="crash", figure="spread", what="  all failed, after the first", most=0.5),
    Line(scenario="crash", figure="restart", what="  back again, all see it", most_ratio=1.0),
    Line(scenario="silent", figure="first suspect", what="host silent: first suspect", most=1.5),
    Line(
        scenario="silent",
        figure="first failed",
        what="host silent: first failed",
        least=5.5,
        most=7.0,
        is_worst=True,
    ),
    Line(scenario="silent", figure="spread", what="  all failed, after the first", most=0.5),
    Line(
        scenario="rack-refused",
        figure="all failed",
        what="20 % killed, hosts refuse: all failed everywhere",
        most=5.0,
    ),
    Line(
        scenario="rack-silent",
        figure="all failed",
        what="20 % dark: all failed everywhere",
        most=9.0,
    ),
    *(
        Line(
            scenario=f"loss-{percent}",
            figure=figure,
            what=f"{percent} % loss: {figure}",
            unit="/s" if "datagrams" in figure else "",
            most=most,
            is_worst=True,
        )
        for percent in (10, 25)
        for figure, most in (
            ("false failures", 0.0),
            ("suspicions", None),
            ("datagrams per agent", None),
        )
    ),
    *(
        Line(
            scenario="pause",
            figure=figure,
            what=f"10 % paused for 5 s: {figure}",
            unit="",
            most=0.0,
            is_worst=True,
        )
        for figure in ("healthy shown failed", "paused shown failed")
    ),
    Line(
        scenario="pause",
        figure="healthy suspected",
        what="10 % paused for 5 s: healthy suspected",
        unit="",
    ),
    Line(scenario="pause", figure="healed", what="10 % paused for 5 s: healed", most=0.5),
    Line(scenario="state", figure="p50", what="newest state held, one rack: age, median"),
    Line(
        scenario="state",
        figure="p99",
        what="newest state held, one rack: age, 99th of 100",
        most=2.0,
        is_worst=True,
    ),
    Line(
        scenario="state",
        figure="never held",
        what="newest state held, one rack: none at all",
        unit="of 1",
        most=0.0,
        is_worst=True,
    ),
    Line(
        scenario="idle",
        figure="datagrams",
        what="nothing changes: datagrams received",
        unit="/s",
        most_ratio=3.0,
    ),
    Line(scenario="idle", figure="bytes", what="nothing changes: bytes of IP received", unit="/s"),
    Line(scenario="idle", figure="cpu percent", what="nothing changes: CPU", unit="%"),
    Line(scenario="cost", figure="bytes", what="states at 1 Hz, one rack: bytes of IP", unit="/s"),
    Line(
        scenario="cost",
        figure="times the least",
        what="  times each new record once",
        unit="x",
        most=2.0,
    ),
    Line(
        scenario="cost",
        figure="cpu percent",
        what="states at 1 Hz, one rack: CPU",
        unit="%",
        most_by_count={16: 1.5, 50: 3.0},
    ),
)


def print_table(results: Results) -> None:
    """Medians, with the least and the most of the runs where they differ."""
    table = [["what", "nodes", "serf", "ours", "target", ""]]
    for line in LINES:
        for (scenario, count), sides in sorted(results.items(), key=lambda one: one[0][1]):
            if scenario != line.scenario:
                continue
            ours = sides.get("ours", {}).get(line.figure, [])
            peer = sides.get("serf", {}).get(line.figure, [])
            verdict = line.is_met(count, ours, peer) if ours else None
            table.append(
                [
                    line.what,
                    str(count),
                    _written(peer, line.unit),
                    _written(ours, line.unit),
                    line.target(count)[1] or "-",
                    {True: "met", False: "MISSED", None: ""}[verdict],
                ]
            )
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _written(values: Sequence[float | None], unit: str) -> str:
    if not values:
        return "-"
    found = sorted(one for one in values if one is not None)
    never = len(values) - len(found)
    if not found:
        return "not in time"
    text = f"{_short(median(found))} {unit}".rstrip()
    if found[0] != found[-1]:
        text += f" ({_short(found[0])}-{_short(found[-1])})"
    if never:
        text += f", {never} of {len(values)} not in time"
    return text


def _short(value: float) -> str:
    if value == round(value):
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
