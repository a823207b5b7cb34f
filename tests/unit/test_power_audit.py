"""The audit of rack power, and the gate's file: neither holds anything up."""

import json
from pathlib import Path

import trio

from esnode.gate import FILE, Gate
from esnode.powering import audit as audit_module
from esnode.powering.audit import PowerAudit, keep_gate_file
from tests.hosts import until


def audit_in(folder: Path) -> PowerAudit:
    return PowerAudit(folder, lambda: 1_800_000_000.0)


async def written(audit: PowerAudit) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(audit.run)
        await until(lambda: audit.path.exists() or audit.lost_total > 0)
        await trio.sleep(0.05)
        nursery.cancel_scope.cancel()


async def test_every_line_is_one_document_for_nobody_else(tmp_path: Path) -> None:
    audit = audit_in(tmp_path / "power")
    audit.add("cap", asked_watts=3000, reason="shares of rack:r01")
    audit.add("gate", is_open=True)

    await written(audit)

    lines = [json.loads(line) for line in audit.path.read_text().splitlines()]
    assert lines == [
        {
            "at": "2027-01-15T08:00:00Z",
            "kind": "cap",
            "asked_watts": 3000,
            "reason": "shares of rack:r01",
        },
        {"at": "2027-01-15T08:00:00Z", "kind": "gate", "is_open": True},
    ]
    assert audit.path.stat().st_mode & 0o777 == 0o600


async def test_a_full_file_makes_room_for_the_next(tmp_path: Path) -> None:
    audit = audit_in(tmp_path)
    audit.path.write_bytes(b"x" * (audit_module.BYTES_MAX + 1))
    audit.add("cap")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(audit.run)
        await until(lambda: (tmp_path / "audit.jsonl.1").exists())
        await until(audit.path.exists)
        nursery.cancel_scope.cancel()

    assert len(audit.path.read_text().splitlines()) == 1


async def test_a_disk_that_refuses_loses_lines_and_counts_them(tmp_path: Path) -> None:
    audit = audit_in(tmp_path)
    audit.path.mkdir()
    audit.add("cap")
    audit.add("cap")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(audit.run)
        await until(lambda: audit.lost_total == 2)
        nursery.cancel_scope.cancel()


def test_lines_that_nobody_writes_are_bounded(tmp_path: Path) -> None:
    audit = audit_in(tmp_path)

    for _ in range(audit_module.WAITING_MAX + 5):
        audit.add("cap")

    assert audit.lost_total == 5


async def test_the_gate_file_follows_the_gate(tmp_path: Path) -> None:
    gate = Gate("not yet")
    file = tmp_path / "power" / FILE

    def says(is_open: bool) -> bool:
        try:
            return json.loads(file.read_text())["is_open"] is is_open
        except (OSError, ValueError):
            return False

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_gate_file, gate, file.parent, lambda: "boot-1")
        await until(lambda: says(False))
        gate.open(is_governed=True)
        await until(lambda: says(True))
        nursery.cancel_scope.cancel()

    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["boot_id"] == "boot-1"
