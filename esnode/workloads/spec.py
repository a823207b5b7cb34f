"""What a job is, as its submitter wrote it: one table of keys.

Its own file because everything about specs is made from this table: reading, `job lint --explain`,
the document in the journal, the documentation. A key is the path in the YAML file; a name's last
word is the unit. It must not know how a file is read (`spec_reading`), nor what a job does.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, cast

from esnode.config.values import (
    one_of,
    parse_duration_seconds,
    parse_text,
    parse_url,
)
from esnode.workloads import spec_values as values

GPUS_MAX = 16
PRIORITY_MAX = 9
ENGINES = ("vllm", "sglang", "tgi", "llama.cpp")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecKey:
    """What is known of one key besides its value."""

    path: str
    attribute: str
    parse: Callable[[object], object]
    metavar: str
    why: str
    default: object
    """`MISSING` for a key without which there is no job."""

    @property
    def is_needed(self) -> bool:
        """Whether a spec without it is none."""
        return self.default is MISSING


def _key(
    path: str, metavar: str, parse: Callable[[Any], object], why: str, default: object = MISSING
) -> Any:
    about = {"path": path, "metavar": metavar, "parse": values.not_none(parse), "why": why}
    if default is MISSING:
        return field(metadata={"spec": about})
    return field(default=default, metadata={"spec": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One job as its submitter wants it. Durations are seconds, memory is bytes."""

    name: str = _key("name", "NAME", values.parse_name, "How people call it.")
    command: tuple[str, ...] = _key(
        "command", "[PROGRAM, ARGUMENT...]", values.parse_command, "What is run; no shell reads it."
    )
    adapter: str = _key(
        "adapter",
        "process|engine",
        one_of("process", "engine"),
        "`engine` is a model server, which is drained before it is stopped.",
        "process",
    )
    workdir: str | None = _key(
        "workdir",
        "PATH",
        parse_text,
        "Where it runs. None: a folder of its own.",
        None,
    )
    environment: tuple[tuple[str, str], ...] = _key(
        "environment",
        "{NAME: TEXT}",
        values.parse_environment,
        "Beside PATH and HOME.",
        (),
    )
    gpu_count: int = _key(
        "devices.gpu",
        "N",
        values.whole_between(0, GPUS_MAX),
        "Whole GPUs, which it has to itself.",
        0,
    )
    gpu_memory_bytes: int = _key(
        "devices.gpu_memory", "SIZE", values.parse_size_bytes, "What each of its GPUs must have.", 0
    )
    gpu_models: tuple[str, ...] = _key(
        "devices.gpu_model",
        "TEXT|[TEXT...]",
        values.parse_texts,
        "Only GPUs with one of these in their name: h100, b200.",
        (),
    )
    cpu_count: int = _key(
        "cpus",
        "N",
        values.whole_between(0, 4096),
        "Cores that are counted for it; it may use more while they are idle.",
        0,
    )
    memory_bytes: int = _key(
        "memory",
        "SIZE",
        values.parse_size_bytes,
        "Memory that is counted for it, and its limit where cgroups can set one; 0: neither.",
        0,
    )
    priority: int = _key(
        "priority", "0..9", values.whole_between(0, PRIORITY_MAX), "9 goes first.", 4
    )
    is_preemptible: bool = _key(
        "preemptible",
        "true|false",
        values.truth,
        "Whether a job of higher priority may have its place.",
        False,
    )
    latency: str = _key(
        "latency",
        "low|medium|high",
        one_of("low", "medium", "high"),
        "How soon an answer is wanted; weighs when a place is chosen.",
        "medium",
    )
    load: str = _key(
        "load",
        "compute|mixed|decode",
        one_of("compute", "mixed", "decode"),
        "What more watts bring it: much, some, nearly nothing.",
        "mixed",
    )
    minimum_watts: int | None = _key(
        "power.minimum",
        "WATTS",
        values.watts,
        "Of each GPU: it is not started with less. None: the lowest limit of the GPU.",
        None,
    )
    expected_watts: int | None = _key(
        "power.expected",
        "WATTS",
        values.watts,
        "Of each GPU: what it will draw when nothing holds it back. None: as others have.",
        None,
    )
    restart_policy: str = _key(
        "restart.policy",
        "never|on-failure|always",
        one_of("never", "on-failure", "always"),
        "When it ends by itself, or its machine starts anew.",
        "never",
    )
    restarts_max: int = _key(
        "restart.maximum", "N", values.whole_between(0, 1_000_000), "Then it has failed.", 5
    )
    restart_backoff_seconds: float = _key(
        "restart.backoff",
        "DURATION",
        parse_duration_seconds,
        "Before the first restart; doubled each time, at most 60 s.",
        1.0,
    )
    stop_signal: str = _key(
        "stop.signal", "SIGNAL", values.parse_signal, "How it is asked to end.", "TERM"
    )
    stop_grace_seconds: float = _key(
        "stop.grace",
        "DURATION",
        parse_duration_seconds,
        "How long that may take; then KILL.",
        30.0,
    )
    checkpoint: str = _key(
        "checkpoint.class",
        "none|app",
        one_of("none", "app"),
        "`app` saves its state when signalled, and goes on from it when started again.",
        "none",
    )
    checkpoint_signal: str = _key(
        "checkpoint.signal", "SIGNAL", values.parse_signal, "Asks it to save.", "USR1"
    )
    checkpoint_ready: str = _key(
        "checkpoint.ready",
        "PATH",
        parse_text,
        "The file that it writes last; newer than the signal means saved. Relative to workdir.",
        "checkpoint_ready",
    )
    checkpoint_timeout_seconds: float = _key(
        "checkpoint.timeout", "DURATION", parse_duration_seconds, "How long a save may take.", 600.0
    )
    is_idempotent: bool = _key(
        "idempotent",
        "true|false",
        values.truth,
        "Whether it may be run again from its beginning.",
        False,
    )
    engine: str | None = _key(
        "engine.kind", "|".join(ENGINES), one_of(*ENGINES), "Which model server it is.", None
    )
    engine_url: str | None = _key(
        "engine.url", "URL", parse_url, "Where it answers: http://127.0.0.1:8000.", None
    )
    drain_timeout_seconds: float = _key(
        "engine.drain_timeout",
        "DURATION",
        parse_duration_seconds,
        "How long requests under way may take before it is stopped.",
        300.0,
    )
    metrics_url: str | None = _key(
        "metrics_url", "URL", parse_url, "Its own metrics: tokens are counted for it.", None
    )
    log_bytes_max: int = _key(
        "logs.size", "SIZE", values.parse_size_bytes, "Of one file of its output.", 10 * 1024**2
    )
    log_files_count: int = _key(
        "logs.files", "N", values.whole_between(1, 100), "So many are kept.", 3
    )
    nodes: tuple[str, ...] = _key(
        "placement.nodes", "NAME|[NAME...]", values.parse_texts, "Only on these.", ()
    )
    racks: tuple[str, ...] = _key(
        "placement.racks", "NAME|[NAME...]", values.parse_texts, "Only in these.", ()
    )
    is_pinned: bool = _key(
        "placement.pinned",
        "true|false",
        values.truth,
        "Stays on the node that it was submitted to.",
        False,
    )

    @property
    def may_run_again(self) -> bool:
        """Whether stopping it and starting it later loses nothing that it does not allow to."""
        return self.is_idempotent or self.checkpoint == "app"


def _spec_key(of: Any) -> SpecKey:
    about = cast("dict[str, Any]", of.metadata["spec"])
    return SpecKey(attribute=of.name, default=of.default, **about)


KEYS: dict[str, SpecKey] = {one.path: one for one in map(_spec_key, fields(JobSpec))}
"""By path, in the order of the table."""
