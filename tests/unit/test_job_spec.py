"""What a submitter may write, and what each mistake is called."""

import pytest

from esnode.workloads.spec import KEYS, JobSpec
from esnode.workloads.spec_reading import (
    SpecRefused,
    document_of,
    read_spec,
    spec_notes,
    spec_of,
)

SMALLEST = 'name: ticker\ncommand: [bash, -c, "echo hi"]\ndevices: {gpu: 1}\n'


def test_the_smallest_spec_has_a_default_for_everything_else():
    spec = read_spec(SMALLEST)

    assert spec == JobSpec(name="ticker", command=("bash", "-c", "echo hi"), gpu_count=1)
    assert spec.restart_policy == "never"
    assert spec.stop_grace_seconds == 30.0


def test_json_is_read_as_well():
    spec = read_spec('{"name": "a", "command": ["true"], "restart": {"policy": "always"}}')

    assert spec.restart_policy == "always"


def test_a_spec_is_kept_without_its_defaults_and_read_again_as_the_same():
    spec = read_spec(
        SMALLEST
        + "environment: {A: 1, B: text}\nstop: {grace: 90s}\nmemory: 40GiB\n"
        + "power: {minimum: 200W, expected: 500}\nplacement: {racks: r01}\n"
    )

    document = document_of(spec)

    assert spec_of(document) == spec
    assert document["stop"] == {"grace": "90s"}
    assert "priority" not in document
    assert spec.memory_bytes == 40 * 1024**3
    assert spec.minimum_watts == 200


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("", "is not a mapping", id="nothing"),
        pytest.param("- a", "is not a mapping", id="list"),
        pytest.param("name: a", "command: is missing", id="no command"),
        pytest.param("name: a\ncommand: run me", "write a list", id="command as one text"),
        pytest.param("name: a\ncommand: []", "is not a list", id="empty command"),
        pytest.param("name: A b\ncommand: [x]", "is not a name", id="name"),
        pytest.param("name: a\ncommand: [x]\nprio: 3", "did you mean priority?", id="misspelt"),
        pytest.param(
            "name: a\ncommand: [x]\ndevices: {gpus: 1}", "did you mean devices.gpu?", id="nested"
        ),
        pytest.param("name: a\ncommand: [x]\ndevices: 2", "not a mapping of gpu", id="group"),
        pytest.param("name: a\ncommand: [x]\npriority: 12", "outside 0 to 9", id="priority"),
        pytest.param("name: a\ncommand: [x]\npriority: true", "whole number", id="truth as number"),
        pytest.param("name: a\ncommand: [x]\nstop: {grace: 5}", "no unit", id="bare duration"),
        pytest.param("name: a\ncommand: [x]\nmemory: 3 potatoes", "not a size", id="size"),
        pytest.param("name: a\ncommand: [x]\nmemory: .nan", "not a size", id="nan"),
        pytest.param("name: a\ncommand: [x]\npriority:", "has no value", id="empty value"),
        pytest.param("name: a\nname: b\ncommand: [x]", "stands twice", id="twice"),
        pytest.param("a: &x [1]\nb: *x", "an alias", id="alias"),
        pytest.param("name: [", "is not YAML", id="broken"),
        pytest.param("name: a\x00", "is not YAML", id="nul"),
        pytest.param(
            "name: a\ncommand: [x]\nenvironment: {ESNODE_JOB_ID: 1}",
            "which the agent sets",
            id="ours",
        ),
        pytest.param(
            "name: a\ncommand: [x]\nenvironment: {'A=B': 1}", "no variable", id="odd variable"
        ),
        pytest.param("name: a\ncommand: [x]\nstop: {signal: STOP}", "is not one of", id="signal"),
        pytest.param(
            "name: a\ncommand: [x]\nadapter: engine", "engine.url: is needed", id="engine"
        ),
        pytest.param(
            "name: a\ncommand: [x]\ndevices: {gpu_model: h100}", "devices.gpu is 0", id="model"
        ),
        pytest.param(
            "name: a\ncommand: [x]\npower: {minimum: 500, expected: 400}",
            "is above power.expected",
            id="watts",
        ),
        pytest.param("name: a\ncommand: [x]\n? [1, 2]\n: 3\n", "is not YAML", id="list as key"),
        pytest.param("!!python/object/apply:os.system [id]", "is not YAML", id="python tag"),
        pytest.param("a: " + "[" * 2000, "is not YAML", id="deep"),
        pytest.param("x" * 200_000, "is longer than", id="large"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_and_where(text, line):
    with pytest.raises(SpecRefused) as refused:
        read_spec(text)

    assert any(line in one for one in refused.value.lines)
    assert all("\n" not in one and len(one) < 300 for one in refused.value.lines)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(SpecRefused) as refused:
        read_spec("name: A b\ncommand: x\npriority: 99\ncpu: 4\n")

    assert len(refused.value.lines) == 4


@pytest.mark.parametrize(
    ("more", "note"),
    [
        pytest.param("preemptible: true", "stopped for good", id="preemptible"),
        pytest.param("restart: {policy: always}", "from its beginning", id="restart"),
        pytest.param("command: [bash, train]", "-c", id="shell"),
    ],
)
def test_what_may_not_be_meant_is_noted(more, note):
    text = f"name: a\n{more}\n" + ("" if more.startswith("command") else "command: [x]\n")

    assert any(note in one for one in spec_notes(read_spec(text)))


def test_every_key_says_why_one_would_change_it():
    assert all(one.why and one.metavar for one in KEYS.values())
    assert list(KEYS)[:2] == ["name", "command"]
