"""The gate of work, in the agent and in the file that shells read."""

from pathlib import Path

import pytest
import trio
import trio.testing

from esnode.gate import FILE, Gate, closed_line, gate_document


def test_a_gate_is_shut_until_somebody_knows_better() -> None:
    gate = Gate()

    assert not gate.is_open
    assert gate.reason == "this agent has just begun"


async def test_whoever_waits_is_let_through_when_it_opens() -> None:
    gate = Gate()
    passed: list[str] = []

    async def pass_through() -> None:
        await gate.wait_open()
        passed.append("through")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_through)
        await trio.testing.wait_all_tasks_blocked()
        gate.close("another reason")
        await trio.testing.wait_all_tasks_blocked()
        assert passed == []
        gate.open()

    assert passed == ["through"]


async def test_every_change_is_seen_and_nothing_else() -> None:
    gate = Gate("shut")
    changes: list[str] = []

    async def watch() -> None:
        while True:
            await gate.wait_change()
            changes.append(gate.reason)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        for reason in ("shut", "hot", "hot"):
            await trio.testing.wait_all_tasks_blocked()
            gate.close(reason)
        await trio.testing.wait_all_tasks_blocked()
        gate.open(is_governed=True)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert changes == ["hot", ""]
    assert gate.is_governed


def written(folder: Path, gate: Gate, boot_id: str = "boot-1") -> Path:
    file = folder / FILE
    file.write_text(gate_document(gate, boot_id=boot_id))
    return file


def governed(reason: str) -> Gate:
    gate = Gate()
    if reason:
        gate.close(reason, is_governed=True)
    else:
        gate.open(is_governed=True)
    return gate


@pytest.mark.parametrize(
    ("reason", "boot_id", "expected"),
    [
        pytest.param("", "boot-1", None, id="open"),
        pytest.param("not settled", "boot-1", "the gate is shut: not settled", id="shut"),
        pytest.param(
            "",
            "boot-2",
            "the machine has started anew, and its power cap is not set yet",
            id="open in another boot",
        ),
    ],
)
def test_the_file_speaks_for_its_own_boot(
    tmp_path: Path, reason: str, boot_id: str, expected: str | None
) -> None:
    file = written(tmp_path, governed(reason))

    assert closed_line(file, boot_id=boot_id) == expected


def test_a_machine_that_nobody_governs_may_work(tmp_path: Path) -> None:
    gate = Gate()
    gate.open()

    assert closed_line(tmp_path / "absent", boot_id="boot-1") is None
    assert closed_line(written(tmp_path, gate), boot_id="boot-2") is None


@pytest.mark.parametrize("content", ["", "[]", '{"is_open": true}', "\xff"])
def test_a_file_that_cannot_be_read_is_shut(tmp_path: Path, content: str) -> None:
    file = tmp_path / FILE
    file.write_bytes(content.encode("latin-1"))

    assert closed_line(file, boot_id="boot-1") == f"{file} cannot be read"
