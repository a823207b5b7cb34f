"""Writes `configuration.md` and `metrics.md` beside it, from the tables that the agent runs by.

Run it after a change of `esnode.config.keys` or `esnode.metrics`: `python docs/generate.py`. A test
compares the files with what this makes. It is no part of the package, so that an agent carries no
documentation.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from esnode.config import KEYS, Key
from esnode.metrics import GROUPS, METRICS, PROFILES, Metric
from esnode.metrics.aliases import DCGM, ESNODE_CORE, KUBERNETES

FOLDER = Path(__file__).resolve().parent

CONFIGURATION_HEAD = """\
# Configuration

<!-- Made by docs/generate.py from esnode/config/keys.py: change it there. -->

A value is looked for in this order, and the first one found holds:

1. a flag of the command line, before or after the command: `esnode agent --scrape-interval 1s`
2. an environment variable: `ESNODE_SCRAPE_INTERVAL=1s`
3. the configuration file: `scrape_interval = "1s"`
4. the default

The file is TOML. It is the one that `--config FILE` or `ESNODE_CONFIG` names, else `esnode.toml` in
the working directory, else `/etc/esnode/esnode.toml`. `esnode config show` prints every value and
where it comes from, with secrets masked; `esnode config set KEY=VALUE` changes the file and keeps
its comments.

Mistakes are found before anything starts: an unknown key, a number without its unit or an address
that is none stops the command with one line for each. SIGHUP loads the configuration again; a bad
one is refused as a whole and the running one stays. A key that needs a restart says so in the log.

Durations are written with their unit: `250ms`, `5s`, `2m`, `1h`. Lists are TOML lists, or text with
commas. Booleans are `true` or `false`; flags take them as a value: `--enable-cpu false`.

Options that are no keys: `--config FILE` (or `ESNODE_CONFIG`) names the file, `--agent URL` (or
`ESNODE_AGENT`) the agent that `status`, `metrics` and `diagnostics` ask, `--no-color` (or
`NO_COLOR`, `ESNODE_NO_COLOR`) turns colours off, `--version` tells the version, and `--live` makes
`esnode agent` show a table.
"""

DORMANT_HEAD = """\
## Keys without effect

Keys of the predecessor that nothing reads yet. They are accepted and checked, so that its files
work unchanged, and `esnode config show` marks those that are set.
"""

METRICS_HEAD = """\
# Metrics

<!-- Made by docs/generate.py from esnode/metrics: change them there. -->

All of these are served at `/metrics`, in Prometheus' text format or, to those who ask for it, in
OpenMetrics. What a machine does not have, and what could not be read lately, is absent: a value of
0 was measured. Counters that begin with the agent say so; the others are the kernel's or the
device's own.

`/metrics?collect[]=gpu&collect[]=power` serves some collectors only ({groups});
`/metrics?profile=NAME` serves a named selection ({profiles}). Families marked with * are in
`basic`.

GPU values carry the label `uuid` alone. `esnode_gpu_info` carries the identity once:

    esnode_gpu_power_watts * on(uuid) group_left(name, index) esnode_gpu_info
"""

ALIASES_HEAD = """\
## Names of other exporters

Off by default. `metric_aliases = ["esnode-core", "dcgm"]` serves them beside the families above,
made from the same values, so that dashboards made for them go on working. With `esnode-core`, the
GPU families above also carry the predecessor's `index` label after `uuid`.
"""


def default_of(key: Key) -> str:
    """The default as one would write it."""
    value = key.default
    match value:
        case None | ():
            return "not set"
        case bool():
            return f"`{str(value).lower()}`"
        case float() if key.metavar == "DURATION":
            return f"`{value:g}s`"
        case float():
            return f"`{value:g}`"
        case tuple() if not hasattr(value, "port"):
            return "`" + ",".join(map(str, value)) + "`"
        case _:
            return f"`{value}`"


def describe_key(key: Key) -> str:
    """One section about one key."""
    flags = ", ".join(f"`{flag} {key.metavar}`" for flag in (key.flag, *key.flag_aliases))
    variables = ", ".join(f"`{name}`" for name in (key.environment, *key.environment_aliases))
    lines = [
        f"### {key.name}",
        "",
        key.help,
        "",
        f"- Default: {default_of(key)}",
        f"- Flag: {flags}; variable: {variables}",
        "- A running agent takes it " + ("at SIGHUP" if key.is_reloadable else "after a restart"),
    ]
    if key.is_secret:
        lines.append("- Secret: never shown")
    if key.file_aliases:
        older = ", ".join(f"`{name}`" for name, _ in key.file_aliases)
        lines.append(f"- Also read from the file as {older}")
    return "\n".join(lines) + "\n"


def render_configuration() -> str:
    """The whole of `configuration.md`."""
    dormant = [key for key in KEYS.values() if key.is_dormant]
    rows = [
        [
            f"`{key.name}`",
            ", ".join(f"`{flag}`" for flag in (key.flag, *key.flag_aliases)),
            ", ".join(f"`{name}`" for name in (key.environment, *key.environment_aliases)),
            default_of(key),
            key.help,
        ]
        for key in dormant
    ]
    return "\n".join(
        [
            CONFIGURATION_HEAD,
            "## Keys",
            "",
            *(describe_key(key) for key in KEYS.values() if not key.is_dormant),
            DORMANT_HEAD,
            *table(["Key", "Flag", "Variable", "Default", "What it is for"], rows),
            "",
        ]
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    for row in (header, ["---"] * len(header), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def describe_metrics(metrics: Iterable[Metric]) -> Iterator[str]:
    """A table of families."""
    rows = (
        [
            f"`{metric.name}`" + (" *" if metric.is_basic else ""),
            metric.kind,
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.help,
        ]
        for metric in metrics
    )
    return table(["Name", "Kind", "Labels", "Meaning"], rows)


def render_metrics() -> str:
    """The whole of `metrics.md`."""
    groups = ", ".join(f"`{group}`" for group in GROUPS)
    profiles = ", ".join(f"`{profile}`" for profile in PROFILES)
    lines = [METRICS_HEAD.format(groups=groups, profiles=profiles)]
    for group in GROUPS:
        lines += [f"## {group}", ""]
        lines += describe_metrics(metric for metric in METRICS if metric.group == group)
        lines.append("")
    lines.append(ALIASES_HEAD)
    for title, aliases in (
        ("esnode-core: the predecessor", ESNODE_CORE),
        ("k8s_mode: the predecessor's Kubernetes names", KUBERNETES),
        ("dcgm: dcgm-exporter", DCGM),
    ):
        lines += [f"### {title}", "", *describe_metrics(aliases), ""]
    return "\n".join(lines)


PAGES = {"configuration.md": render_configuration, "metrics.md": render_metrics}


def main() -> None:
    """Write both pages."""
    for name, render in PAGES.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
