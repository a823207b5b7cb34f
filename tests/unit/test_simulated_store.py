import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from esnode.drivers.simulated.codec import decode_line, encode_line
from esnode.drivers.simulated.files import LockedTooLong, append_durably, exclusive_lock
from esnode.drivers.simulated.machine import (
    ChangeRefused,
    Event,
    InletSet,
    LimitSet,
    Load,
    LoadSet,
    Machine,
    Rebooted,
    Repaired,
)
from esnode.drivers.simulated.parts import UnknownSpec
from esnode.drivers.simulated.store import NoMachine, Store, StoreFailed
from tests.simulated_world import World, happen


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "machine.json"


def test_files_are_private_and_so_is_a_folder_made_for_them(world: World, path: Path) -> None:
    world.store(path)

    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    names = ("machine.json", "machine.json.history", "machine.json.lock", "machine.json.lock.turn")
    assert set(modes) == set(names)
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_permissions_of_a_folder_that_exists_are_left_alone(world, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    world.store(tmp_path / "machine.json")

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_uuids_are_stable_for_a_file_and_differ_between_files(tmp_path: Path) -> None:
    first = Store(tmp_path / "a.json")
    second = Store(tmp_path / "b.json")

    uuids = [gpu.uuid for gpu in first.create("h100x2").gpus]
    assert [gpu.uuid for gpu in Store(first.path).create("h100x2").gpus] == uuids
    assert {gpu.uuid for gpu in second.create("h100x2").gpus}.isdisjoint(uuids)
    assert all(uuid.startswith("GPU-") and len(uuid) == 40 for uuid in uuids)


def test_a_change_is_a_history_line_with_its_instant_its_cause_and_its_actor(world, path) -> None:
    store = world.store(path)
    gpu = store.read().gpus[1].uuid
    world.now_seconds = 130.5

    store.change(lambda machine: [LimitSet(gpu=gpu, watts=400)], cause="because")

    line = store.history()[-1]
    assert (line.sequence, line.at_seconds, line.wall_seconds) == (2, 130.5, 1_800_000_130.5)
    assert (line.cause, line.actor_pid) == ("because", os.getpid())
    assert line.event == LimitSet(gpu=gpu, watts=400)


def test_a_refused_change_changes_nothing_of_its_plan(world: World, path: Path) -> None:
    store = world.store(path)
    gpu = store.read().gpus[0].uuid

    with pytest.raises(ChangeRefused):
        happen(store, InletSet(inlet_celsius=40.0), LimitSet(gpu=gpu, watts=1))

    assert store.read().inlet_celsius == 30.0
    assert len(store.history()) == 1


def test_an_empty_plan_writes_nothing(world: World, path: Path) -> None:
    store = world.store(path)
    before = path.stat().st_mtime_ns

    happen(store)

    assert path.stat().st_mtime_ns == before


def test_a_plan_sees_the_machine_as_it_is_now(world: World, path: Path) -> None:
    store = world.store(path)
    gpu = store.read().gpus[0].uuid
    happen(store, LimitSet(gpu=gpu, watts=400))
    world.now_seconds += 10
    seen: list[Machine] = []

    def plan(machine: Machine) -> list[Event]:
        seen.append(machine)
        return []

    store.change(plan, cause="test")
    assert seen[0].gpus[0].limit_in_force_watts == 400


def test_a_reader_sees_a_change_whose_state_was_never_written(world: World, path: Path) -> None:
    store = world.store(path)
    old_state = path.read_bytes()
    reader = Store(path, clocks=world.clocks())
    reader.read()
    happen(store, InletSet(inlet_celsius=44.0))

    path.write_bytes(old_state)

    assert reader.read().inlet_celsius == 44.0
    happen(store, InletSet(inlet_celsius=45.0))
    assert [line.sequence for line in store.history()] == [1, 2, 3]
    assert Store(path).read().inlet_celsius == 45.0


@pytest.mark.parametrize(
    "rest", [pytest.param(b"{", id="one byte"), pytest.param(b'{"sequence": 3, "at', id="half")]
)
def test_a_torn_last_line_is_cut_and_the_cut_recorded(world: World, path: Path, rest) -> None:
    store = world.store(path)
    with store.history_path.open("ab") as file:
        file.write(rest)

    assert store.read().inlet_celsius == 30.0
    happen(store, InletSet(inlet_celsius=41.0))

    events = [line.event for line in store.history()]
    assert events[1] == Repaired(what=f"cut {len(rest)} bytes of an unfinished line")
    assert events[2] == InletSet(inlet_celsius=41.0)
    assert store.repairs == (f"cut {len(rest)} bytes of an unfinished line",)


def test_a_change_of_several_lines_counts_only_once_its_last_line_is_there(world, path) -> None:
    store = world.store(path)
    complete = store.history_path.stat().st_size
    old_state = path.read_bytes()
    happen(store, InletSet(inlet_celsius=41.0), InletSet(inlet_celsius=42.0))
    first = store.history_path.read_bytes()[complete:].split(b"\n")[0] + b"\n"

    with store.history_path.open("r+b") as file:
        file.truncate(complete + len(first))
    path.write_bytes(old_state)

    assert Store(path).read().inlet_celsius == 30.0
    happen(store, InletSet(inlet_celsius=43.0))
    assert store.repairs == (f"cut {len(first)} bytes of an unfinished line",)
    assert [line.sequence for line in store.history()] == [1, 2, 3]
    assert Store(path).read().inlet_celsius == 43.0


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: b"", id="empty"),
        pytest.param(lambda text: text[: len(text) // 2], id="half"),
        pytest.param(lambda text: b"\x00" * len(text), id="zeros, as after a power cut"),
        pytest.param(lambda text: b"[1, 2]", id="another document"),
        pytest.param(lambda text: text.replace(b'"index": 1', b'"index": "1"'), id="a wrong type"),
        pytest.param(lambda text: text.replace(b'"faults"', b'"vaults"'), id="a wrong field"),
        pytest.param(lambda text: text.replace(b"30.0", b"NaN"), id="not a number"),
    ],
)
def test_a_damaged_state_is_rebuilt_from_the_history(
    world: World, path: Path, damage: Callable[[bytes], bytes]
) -> None:
    store = world.store(path)
    gpu = store.read().gpus[0].uuid
    happen(store, LimitSet(gpu=gpu, watts=400), LoadSet(gpu=gpu, load=Load(ratio=0.5)))
    right = store.read()
    damaged = damage(path.read_bytes())
    assert damaged != path.read_bytes()

    path.write_bytes(damaged)

    assert Store(path).read() == right
    mended = world.store(path)
    assert mended.repairs == ("rebuilt the state from the history",)
    assert mended.read() == right


def test_a_missing_state_is_rebuilt_from_the_history(world: World, path: Path) -> None:
    store = world.store(path)
    right = store.read()

    path.unlink()

    assert world.store(path).read() == right


def test_a_machine_whose_creation_was_cut_short_is_created(world: World, path: Path) -> None:
    path.parent.mkdir()
    path.with_name("machine.json.history").write_bytes(b'{"format_ver')

    store = world.store(path)

    assert len(store.history()) == 1
    assert store.read().spec == "h100x2"


def _cut_history(store: Store) -> None:
    store.history_path.write_bytes(store.history_path.read_bytes()[:-30])


def _damage_history(store: Store) -> None:
    first, rest = store.history_path.read_bytes().split(b"\n", 1)
    store.history_path.write_bytes(first[:-10] + b"\n" + rest)
    store.path.write_bytes(b"")


def _skip_in_history(store: Store) -> None:
    line = decode_line(store.history_path.read_bytes().split(b"\n")[1])
    moved = encode_line(line).replace(b'"sequence": 2', b'"sequence": 9')
    with store.history_path.open("ab") as file:
        file.write(moved)


def _forget_everything(store: Store) -> None:
    store.history_path.unlink()
    store.path.write_bytes(b"{")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(
            lambda store: store.path.write_text('{"format_version": 2}'),
            r"another version of esnode \(format version 2 instead of 1\)",
            id="a format of the future",
        ),
        pytest.param(_cut_history, "ends before the last change", id="a shortened history"),
        pytest.param(lambda store: store.history_path.unlink(), "is missing", id="no history"),
        pytest.param(_damage_history, "change 1 is damaged", id="both files damaged"),
        pytest.param(_skip_in_history, "has change 9 in the place of 3", id="a gap"),
        pytest.param(_forget_everything, "remove both", id="a damaged state and no history"),
    ],
)
def test_files_that_cannot_be_believed_are_refused_in_one_line(world, path, spoil, reason) -> None:
    store = world.store(path)
    happen(store, InletSet(inlet_celsius=40.0))

    spoil(store)

    with pytest.raises(StoreFailed, match=reason) as caught:
        Store(path).read()
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreFailed, match=reason):
        happen(Store(path), InletSet(inlet_celsius=41.0))


def test_a_state_that_cannot_be_replaced_leaves_the_change_in_the_history(world, path) -> None:
    store = world.store(path)
    path.with_name("machine.json.new").mkdir()

    happen(store, InletSet(inlet_celsius=42.0))

    assert Store(path).read().inlet_celsius == 42.0
    assert "its history holds the change" in store.repairs[0]
    path.with_name("machine.json.new").rmdir()
    happen(store, InletSet(inlet_celsius=43.0))
    assert [line.sequence for line in store.history()] == [1, 2, 3]
    assert Store(path).read().inlet_celsius == 43.0


def test_a_history_that_cannot_be_written_means_that_nothing_happened(world, path) -> None:
    store = world.store(path)
    kept = store.history_path.read_bytes()
    path.unlink()
    store.history_path.unlink()
    store.history_path.mkdir()

    with pytest.raises(StoreFailed, match="Is a directory"):
        happen(store, InletSet(inlet_celsius=42.0))
    store.history_path.rmdir()
    store.history_path.write_bytes(kept)
    assert Store(path).read().inlet_celsius == 30.0


def test_no_machine_says_how_to_make_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "no" / "machine.json")

    for use in (store.read, store.history, lambda: happen(store)):
        with pytest.raises(NoMachine, match="start the agent with --hardware"):
            use()
    assert not (tmp_path / "no").exists()


def test_another_machine_at_the_path_is_refused_and_says_how_to_reset(world, path) -> None:
    world.store(path, "h100x2")

    with pytest.raises(StoreFailed, match="holds a h100x2, not a a100x4: use simulated:h100x2"):
        world.store(path, "a100x4")
    with pytest.raises(UnknownSpec):
        world.store(path, "gtx")


def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")

    with pytest.raises(StoreFailed, match="cannot use the simulated machine"):
        Store(blocked / "machine.json").create("h100x1")


def test_a_directory_in_the_place_of_the_state_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="Is a directory"):
        Store(tmp_path).create("h100x1")


def test_a_host_reboot_is_recorded_by_the_next_writer(world: World, path: Path) -> None:
    store = world.store(path)
    gpu = store.read().gpus[0].uuid
    world.now_seconds = 5000.0
    happen(store, LimitSet(gpu=gpu, watts=400), LoadSet(gpu=gpu, load=Load(ratio=1.0)))

    world.now_seconds, world.host_boot_id = 20.0, "boot-b"

    assert store.read_now().gpus[0].limit_in_force_watts == 700
    happen(store, InletSet(inlet_celsius=33.0))
    reboot, change = store.history()[-2:]
    assert reboot.event == Rebooted(host_boot_id="boot-b", is_host_reboot=True)
    assert (reboot.at_seconds, change.at_seconds) == (0.0, 20.0)
    machine = store.read()
    assert (machine.boot_number, machine.gpus[0].load.ratio) == (2, 0.0)


def test_two_writers_at_once_lose_nothing(path: Path) -> None:
    Store(path).create("h100x1")
    gpu = Store(path).read().gpus[0].uuid

    def write(part: int) -> None:
        store = Store(path)
        for number in range(20):
            watts = 300 + 20 * part + number
            store.change(lambda _, watts=watts: [LimitSet(gpu=gpu, watts=watts)], cause="race")

    threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = Store(path).history()
    assert [line.sequence for line in lines] == list(range(1, 82))
    assert [line.at_seconds for line in lines] == sorted(line.at_seconds for line in lines)
    assert sorted(line.event.watts for line in lines[1:]) == list(range(300, 380))
    assert Store(path).read().gpus[0].limit_requested_watts == lines[-1].event.watts


def test_a_lock_that_is_never_let_go_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    held = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with pytest.raises(LockedTooLong), exclusive_lock(tmp_path / "lock", attempts=2):
            pass
    finally:
        os.close(held)


def test_an_append_cuts_what_follows_the_complete_lines(tmp_path: Path) -> None:
    (tmp_path / "history").write_bytes(b"one\ntw")

    append_durably(tmp_path / "history", b"two\n", at=4)

    assert (tmp_path / "history").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize(("ending", "read"), [("", Store.read_now), (".history", Store.history)])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(
    world: World, path: Path, ending: str, read: Callable[[Store], object]
) -> None:
    world.store(path)
    replaced = path.with_name(path.name + ending)
    replaced.unlink()
    os.mkfifo(replaced)

    with pytest.raises(StoreFailed, match="Not a regular file"):
        read(Store(path))


def test_a_machine_that_cannot_be_looked_for_is_not_called_missing(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.symlink_to(endless)

    with pytest.raises(StoreFailed, match="Too many levels of symbolic links"):
        Store(endless / "machine.json").change(lambda machine: [], cause="a test")
