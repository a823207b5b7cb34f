"""A job's spec from a file and back: YAML or JSON to `JobSpec`, with every mistake named.

Its own file because it is a contract with people. All mistakes are told at once, each with its
path; an unknown key is a mistake and the nearest known one is named. What a spec leaves out has the
table's default. It must not know where the text comes from.
"""

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from esnode.config.values import BadValue
from esnode.workloads.spec import KEYS, JobSpec, SpecKey

TEXT_BYTES_MAX = 128 * 1024
_DEPTH_MAX = 2
_SHOWN_CHARACTERS_MAX = 60


class SpecRefused(Exception):
    """A text is no spec of a job; one line for each mistake."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


class _PlainLoader(yaml.SafeLoader):
    """YAML without what makes a small text a large one, and with every key once."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # in its stubs
            raise SpecRefused((f"line {mark.line + 1}: an alias (*NAME): write the value out",))
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: list[object] = []
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise SpecRefused((f"line {line}: {key!r} stands twice",))
            seen.append(key)
        return super().construct_mapping(node, deep)


def read_spec(text: str | bytes) -> JobSpec:
    """The spec that a text holds; JSON is YAML too.

    Raises:
        SpecRefused: with one line for each mistake.
    """
    if len(text) > TEXT_BYTES_MAX:
        raise SpecRefused((f"is longer than {TEXT_BYTES_MAX // 1024} KiB",))
    try:
        document = yaml.load(text, Loader=_PlainLoader)
    except yaml.YAMLError as error:
        raise SpecRefused((_yaml_line(error),)) from None
    except (ValueError, RecursionError) as error:  # bytes that are no text, dates that are none
        raise SpecRefused((f"is not YAML: {error}",)) from None
    return spec_of(document)


def spec_of(document: object) -> JobSpec:
    """The spec that a document holds.

    Raises:
        SpecRefused: with one line for each mistake.
    """
    if not isinstance(document, Mapping):
        raise SpecRefused(("is not a mapping; the smallest spec is `name:` and `command:`",))
    lines: list[str] = []
    found = dict(_flat(document, "", lines))
    read: dict[str, Any] = {}
    for path, value in found.items():
        spec_key = KEYS.get(path)
        if spec_key is None:
            lines.append(_unknown_line(path))
            continue
        try:
            read[spec_key.attribute] = spec_key.parse(value)
        except BadValue as bad:
            lines.append(f"{path}: {_shown(value)} {bad}")
    lines += [
        f"{one.path}: is missing; {one.metavar}" for one in _needed() if one.path not in found
    ]
    if lines:
        raise SpecRefused(tuple(lines))
    spec = JobSpec(**read)
    if contradictions := tuple(_contradictions(spec)):
        raise SpecRefused(contradictions)
    return spec


def document_of(spec: JobSpec) -> dict[str, Any]:
    """The document that reads as this spec, without what is as in the table."""
    document: dict[str, Any] = {}
    for one in KEYS.values():
        value = getattr(spec, one.attribute)
        if not one.is_needed and value == one.default:
            continue
        *above, last = one.path.split(".")
        place = document
        for name in above:
            place = place.setdefault(name, {})
        place[last] = plain_value(one, value)
    return document


def spec_notes(spec: JobSpec) -> tuple[str, ...]:
    """What is no mistake, and yet may not be meant."""
    notes = []
    if spec.is_preemptible and not spec.may_run_again:
        notes.append(
            "preemptible: it would be stopped for good, since it neither saves its state "
            "(checkpoint.class: app) nor may run again (idempotent: true)"
        )
    if spec.restart_policy != "never" and not spec.may_run_again:
        notes.append("restart.policy: it is run again from its beginning, see idempotent")
    if spec.command[0] in ("bash", "sh") and len(spec.command) == 2:
        notes.append(
            'command: a shell with one argument runs a file of that name; "-c" is missing?'
        )
    return tuple(notes)


def plain_value(one: SpecKey, value: Any) -> Any:
    """As YAML and JSON write it."""
    if one.attribute == "environment":
        return dict(value)
    if one.attribute.endswith("_seconds"):
        return f"{value:g}s"
    return list(value) if isinstance(value, tuple) else value


def _flat(document: Mapping[Any, Any], above: str, lines: list[str]) -> Iterator[tuple[str, Any]]:
    groups = {path.partition(".")[0] for path in KEYS if "." in path}
    for name, value in document.items():
        path = f"{above}{name}"
        if not above and path in groups:
            if isinstance(value, Mapping):
                yield from _flat(value, f"{path}.", lines)
            else:
                inside = [one.partition(".")[2] for one in KEYS if one.startswith(f"{path}.")]
                lines.append(f"{path}: {_shown(value)} is not a mapping of {', '.join(inside)}")
        else:
            yield path, value


def _needed() -> Iterator[SpecKey]:
    return (one for one in KEYS.values() if one.is_needed)


def _unknown_line(path: str) -> str:
    near = difflib.get_close_matches(path, KEYS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "`esnode job lint --explain` shows all"
    return f"{path}: is no key of a job; {hint}"


def _contradictions(spec: JobSpec) -> Iterator[str]:
    if spec.adapter == "engine" and spec.engine_url is None:
        yield "engine.url: is needed by adapter: engine, to ask it whether it is ready"
    if spec.adapter == "engine" and spec.engine is None:
        yield "engine.kind: is needed by adapter: engine"
    if spec.adapter != "engine" and (spec.engine or spec.engine_url):
        yield "engine: is for adapter: engine"
    if spec.gpu_count == 0 and (spec.gpu_memory_bytes or spec.gpu_models):
        yield "devices: gpu_memory and gpu_model are of GPUs, and devices.gpu is 0"
    if (
        spec.minimum_watts is not None
        and spec.expected_watts is not None
        and spec.minimum_watts > spec.expected_watts
    ):
        yield f"power.minimum: is above power.expected ({spec.expected_watts} W)"
    if spec.log_bytes_max < 4096:
        yield "logs.size: is below 4 KiB, which is a few lines"
    if spec.is_pinned and (spec.nodes or spec.racks):
        yield "placement.pinned: stays where it is submitted; leave out nodes and racks"


def _shown(value: object) -> str:
    text = json.dumps(value, default=str) if not isinstance(value, str) else repr(value)
    kept = text[: _SHOWN_CHARACTERS_MAX - 3]
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{kept}..."


def _yaml_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return f"{where}is not YAML: {problem}"
