"""What has to outlive a restart: the rules' memory, leases; and what nobody may touch."""

import json
from dataclasses import replace

import pytest

from esnode.acting.forbidden import Described, forbidden_line
from esnode.acting.keeping import BadMemory, decode_memory, encode_memory
from esnode.acting.leases import Lease, LeaseKind, Leases
from esnode.acting.rules import EVERYTHING, Pause, Rules
from esnode.acting.words import Do, Mode, Skip
from tests.acting_cases import COOLING, REAPING, proposal, rules, ticket_of

LEASE = Lease(
    id="act-1",
    feature="cooling",
    kind=LeaseKind.PLACEMENT,
    target="gpu GPU-a",
    original="open",
    changed="closed",
    until_seconds=200.0,
)
JOB = Described(
    pid=4242,
    parent_pid=900,
    uid=1001,
    name="python",
    executable_name="python3.12",
    is_ours=False,
    has_terminal=False,
    is_session_leader=False,
)


def again(held: Rules, *, now: float, elapsed: float, leases: tuple[Lease, ...] = ()) -> Rules:
    """The rules of the next process, `now` on its own clock."""
    document = json.loads(json.dumps(encode_memory(held.memory, leases, 200.0)))
    memory, _ = decode_memory(document, now=now, elapsed_seconds=elapsed)
    return Rules(
        (REAPING, COOLING),
        {"reaping": Mode.ENFORCE, "cooling": Mode.ENFORCE},
        now=now,
        memory=memory,
    )


def test_pauses_falls_and_given_up_targets_outlive_a_restart() -> None:
    held = rules()
    held.pause(EVERYTHING, Pause(reason="r", by="alice", at_unix_seconds=5.0))
    held.memory.tripped["reaping"] = "why"

    after = again(held, now=7.0, elapsed=10.0)

    assert after.pause_of("cooling") == Pause(reason="r", by="alice", at_unix_seconds=5.0)
    assert after.mode("reaping") is Mode.OBSERVE


def test_budgets_and_owners_age_while_nobody_runs() -> None:
    held = rules()
    held.judge(proposal(owner="alice"), 100.0)

    soon = again(held, now=1000.0, elapsed=60.0)
    late = again(held, now=1000.0, elapsed=3600.0)

    assert soon.remaining_count("cooling", 1000.0) == COOLING.per_hour_count - 1
    assert soon.memory.owner_at_seconds == 1000.0 - 60.0 - 100.0
    assert late.remaining_count("cooling", 1000.0) == COOLING.per_hour_count
    assert late.memory.owner_at_seconds is None


def test_what_was_being_done_is_told_as_unknown_and_may_be_tried_again() -> None:
    held = rules()
    ticket = ticket_of(held.judge(proposal(), 100.0))

    after = again(held, now=0.0, elapsed=5.0)

    assert after.interrupted == ((ticket.id, "gpu GPU-a"),)
    assert isinstance(after.judge(proposal(), 59.0), Skip)
    verdict = after.judge(proposal(), 60.0)
    assert isinstance(verdict, Do)
    assert verdict.ticket.id != ticket.id


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param({"schema": "other/1"}, "schema", id="schema"),
        pytest.param({"last_number": "3"}, "last_number", id="number"),
        pytest.param({"pauses": []}, "pauses", id="pauses"),
        pytest.param({"tripped": {"a": 1}}, "a: a text", id="tripped"),
        pytest.param({"spent_ages_seconds": {"a": [float("nan")]}}, "a: a number", id="nan"),
        pytest.param({"conditions": [{}]}, "feature", id="condition"),
        pytest.param({"leases": [{"kind": "power-limit"}]}, "no kind 'power-limit'", id="power"),
    ],
)
def test_a_memory_that_is_none_is_refused_in_one_line(change: dict[str, object], line: str) -> None:
    document = encode_memory(rules().memory, (), 0.0) | change

    with pytest.raises(BadMemory, match=line):
        decode_memory(document, now=0.0, elapsed_seconds=0.0)


def test_a_lease_expires_and_stays_until_it_was_put_back() -> None:
    leases = Leases((LEASE,))

    assert leases.expired(199.0) == ()
    assert leases.expired(200.0) == (LEASE,)
    assert leases.expired(300.0) == (LEASE,)
    leases.put_back("act-1")
    assert leases.all == ()


def test_a_second_change_keeps_the_first_original() -> None:
    leases = Leases((LEASE,))

    leases.take(replace(LEASE, id="act-2", original="closed", changed="shut", until_seconds=500.0))

    assert [(one.id, one.original, one.changed) for one in leases.all] == [
        ("act-2", "open", "shut")
    ]


def test_one_lease_or_all_are_ended_by_a_word() -> None:
    other = replace(LEASE, id="act-2", target="gpu GPU-b")
    leases = Leases((LEASE, other))

    assert [one.id for one in leases.end("act-2", 10.0)] == ["act-2"]
    assert [one.id for one in leases.expired(10.0)] == ["act-2"]
    assert leases.end("act-9", 10.0) == ()
    assert len(leases.end(None, 11.0)) == 2
    assert len(leases.expired(11.0)) == 2


def test_leases_outlive_a_restart_with_what_is_left_of_them() -> None:
    document = json.loads(json.dumps(encode_memory(rules().memory, (LEASE,), 150.0)))

    _, leases = decode_memory(document, now=1000.0, elapsed_seconds=20.0)

    assert leases == (replace(LEASE, until_seconds=1030.0),)


def test_no_lease_can_be_one_of_power_or_clocks() -> None:
    assert not [kind for kind in LeaseKind if "power" in kind or "clock" in kind or "cap" in kind]


def test_a_plain_job_of_a_user_may_be_touched() -> None:
    assert forbidden_line(JOB) is None


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param({"pid": 1}, "first process", id="init"),
        pytest.param({"pid": 2}, "kernel", id="kthreadd"),
        pytest.param({"parent_pid": 2}, "kernel", id="kernel-thread"),
        pytest.param({"is_ours": True}, "own", id="agent"),
        pytest.param({"name": "esnode"}, "esnode", id="agent-by-name"),
        pytest.param({"name": "sshd"}, "sshd", id="sshd"),
        pytest.param({"name": "systemd-logind"}, "systemd", id="systemd"),
        pytest.param({"name": "containerd-shim"}, "containerd", id="shim"),
        pytest.param({"name": "nvidia-persiste"}, "nvidia-persiste", id="name-cut-by-the-kernel"),
        pytest.param({"executable_name": "slurmstepd"}, "slurmstepd", id="renamed"),
        pytest.param({"name": "kubelet"}, "kubelet", id="kubelet"),
        pytest.param({"name": "nv-hostengine"}, "nv-hostengine", id="dcgm"),
        pytest.param({"name": "Xorg"}, "Xorg", id="display"),
        pytest.param({"uid": 0}, "system user 0", id="root"),
        pytest.param({"uid": 999}, "system user 999", id="system-user"),
        pytest.param(
            {"name": "bash", "has_terminal": True, "is_session_leader": True}, "shell", id="login"
        ),
        pytest.param({"uid": None}, "owner is unknown", id="unknown-owner"),
        pytest.param({"name": None}, "name is unknown", id="unknown-name"),
        pytest.param({"is_ours": None}, "kinship", id="unknown-kinship"),
        pytest.param({"has_terminal": None}, "terminal", id="unknown-terminal"),
    ],
)
def test_what_the_machine_needs_may_never_be_touched(change: dict[str, object], line: str) -> None:
    described = replace(JOB, **change)  # type: ignore[arg-type]  # by name

    assert line in (forbidden_line(described) or "")


def test_listing_a_system_user_lifts_that_rule_alone() -> None:
    service = replace(JOB, uid=998)

    assert forbidden_line(service, allowed_uids=(998,)) is None
    assert forbidden_line(replace(service, name="sshd"), allowed_uids=(998,)) is not None
