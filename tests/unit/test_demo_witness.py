"""The witness of a demo: what it makes of histories, and whether its figures are the parts'."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from esnode.cli.demo_witness import BOARDS, SUPPLY_RATIO, Witness
from esnode.drivers.simulated.machine import LimitSet, Machine
from esnode.drivers.simulated.parts import PARTS, SUPPLY_EFFICIENCY_RATIO
from esnode.drivers.simulated.store import Store

CHASSIS_WATTS = 300.0
SETTLE_SECONDS = 1.2
Event = tuple[float, str, dict[str, object]]


def history(folder: Path, name: str, *events: Event, torn: str = "", open_last: int = 0) -> Path:
    """A machine with one GPU, `name`, and what happened to it."""
    path = folder / f"{name}.json"
    gpus = [{"uuid": name, "part": "h100"}]
    path.write_text(json.dumps({"state": {"machine": {"gpus": gpus}}}))
    lines = [
        json.dumps(
            {
                "at_seconds": at,
                "change": change,
                "event": event,
                "remaining": open_last if number == len(events) else 0,
            }
        )
        for number, (at, change, event) in enumerate(events, start=1)
    ]
    path.with_name(path.name + ".history").write_text("".join(f"{one}\n" for one in lines) + torn)
    return path


def created(at: float = 0.0) -> Event:
    return at, "created", {}


def limit(at: float, name: str, watts: int) -> Event:
    return at, "limit", {"gpu": name, "watts": watts}


def inlet_watts(*limits: int) -> float:
    return (sum(limits) + len(limits) * CHASSIS_WATTS) / SUPPLY_RATIO


def witness(paths: Sequence[Path], *, allowed_watts: float, since: float = 10.0) -> Witness:
    return Witness(paths, allowed_watts=allowed_watts, since_seconds=since)


def test_the_figures_are_those_of_the_parts() -> None:
    assert set(BOARDS) == set(PARTS)
    for key, part in PARTS.items():
        assert BOARDS[key].maximum_watts == part.limit_max_watts >= part.limit_default_watts
        assert BOARDS[key].settle_seconds == part.settle_seconds
        assert BOARDS[key].chassis_watts == part.chassis_share_watts
    assert SUPPLY_RATIO <= SUPPLY_EFFICIENCY_RATIO


@pytest.mark.parametrize(
    ("a", "b", "worst"),
    [
        pytest.param([], [], (700, 700), id="what nobody has limited counts at its maximum"),
        pytest.param(
            [limit(5.0, "a", 300)], [limit(5.0, "b", 300)], (300, 300), id="settled long ago"
        ),
        pytest.param(
            [limit(5.0, "a", 300), limit(12.0, "a", 400)],
            [limit(5.0, "b", 400), limit(12.0 - SETTLE_SECONDS, "b", 300)],
            (400, 400),
            id="what ends and what begins at one instant meet",
        ),
        pytest.param(
            [limit(5.0, "a", 300), limit(12.0, "a", 400)],
            [limit(5.0, "b", 400), limit(10.5, "b", 300)],
            (300, 400),
            id="lowered and settled before the other rises",
        ),
        pytest.param(
            [limit(5.0, "a", 300), limit(12.0, "a", 400)],
            [limit(5.0, "b", 400), limit(11.5, "b", 300)],
            (400, 400),
            id="lowered but not settled when the other rises",
        ),
        pytest.param(
            [limit(5.0, "a", 500), limit(11.0, "a", 400), limit(11.1, "a", 300)],
            [limit(5.0, "b", 300)],
            (500, 300),
            id="lowered twice in a moment",
        ),
        pytest.param(
            [limit(5.0, "a", 300), (12.0, "reboot", {})],
            [limit(5.0, "b", 300)],
            (700, 300),
            id="a reboot loses the limit",
        ),
        pytest.param(
            [limit(5.0, "a", 300), (12.0, "fault", {"gpu": "a", "kind": "forget-limit"})],
            [limit(5.0, "b", 300)],
            (700, 300),
            id="a driver forgets the limit",
        ),
    ],
)
def test_the_worst_sum_is_of_all_that_may_still_be_drawn(
    tmp_path: Path, a: list[Event], b: list[Event], worst: tuple[int, int]
) -> None:
    paths = [
        history(tmp_path, "a", created(), *a, limit(14.0, "a", 200)),
        history(tmp_path, "b", created(), *b, limit(14.0, "b", 200)),
    ]
    expected = inlet_watts(*worst)
    exact = witness(paths, allowed_watts=expected).conclude()
    tight = witness(paths, allowed_watts=expected - 1.0).conclude()

    assert exact.worst_watts == pytest.approx(expected)
    assert exact.over == 0
    assert tight.over > 0
    assert tight.overs[0].watts == pytest.approx(expected)


def test_only_instants_since_the_rack_is_protected_count(tmp_path: Path) -> None:
    path = history(tmp_path, "a", created(), limit(5.0, "a", 300), limit(20.0, "a", 250))

    verdict = witness([path], allowed_watts=inlet_watts(300)).conclude()

    assert verdict.instants == 2
    assert verdict.over == 0


@pytest.mark.parametrize(
    ("torn", "open_last"),
    [
        pytest.param('{"at_seconds": 13', 0, id="a line without its end"),
        pytest.param("", 1, id="a change without its last line"),
    ],
)
def test_what_was_not_written_whole_has_not_happened(
    tmp_path: Path, torn: str, open_last: int
) -> None:
    last = limit(12.0, "a", 700)
    events = [created(), limit(5.0, "a", 300), limit(11.0, "a", 200)]
    path = history(tmp_path, "a", *events, *([last] if open_last else []), torn=torn,
                   open_last=open_last)  # fmt: skip

    looking = witness([path], allowed_watts=inlet_watts(300))
    first = looking.look(20.0)
    history(tmp_path, "a", *events, limit(14.0, "a", 700))
    second = looking.look(20.0)

    assert first.over == 0
    assert second.over == 2  # when it rose, and when the limit before it had settled
    assert second.now_watts == pytest.approx(inlet_watts(700))


def test_it_finds_what_the_simulated_machine_itself_would_say(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.json")
    store.create("h100x2")

    def plan(machine: Machine) -> list[LimitSet]:
        return [LimitSet(gpu=gpu.uuid, watts=250) for gpu in machine.gpus]

    store.change(plan, cause="test")
    looking = witness([store.path], allowed_watts=1e9, since=0.0)
    verdict = looking.conclude()
    (machine,) = looking.machines
    seen = store.read()

    assert verdict.worst_watts == pytest.approx(inlet_watts(700, 700))
    for seconds in (0.0, SETTLE_SECONDS - 0.1, SETTLE_SECONDS + 0.1):
        at = seen.at_seconds + seconds
        obeyed = 1400 if seconds < SETTLE_SECONDS else 500
        assert machine.in_force_watts(at) == obeyed
