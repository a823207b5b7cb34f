"""In which order jobs wait, and what is set aside for those that have to.

Its own file because fairness over time is another matter than a place at one instant. It must not
know how a place is found.

**Order.** A job's effective priority is its own, plus one for every `AGEING_SECONDS` that it has
waited, up to `AGED_PRIORITY_MAX`. The two priorities above that are neither reached nor left by
ageing. Among equals who came first goes first. Nobody starves below those two: having waited long
enough a job is at `AGED_PRIORITY_MAX`, where only those come before it that came before it. A job
for which room has been made already goes before all, lest others take it.

**Passing.** A job that finds no place is blocked, and the rest of the queue may go on, but not at
its cost. The first blocked job of the order (the head), and each other that has waited longer than
`RESERVING_SECONDS`, at most `RESERVATIONS_MAX` together, sets aside what is free on one machine
each: the one where the fewest of its GPUs are missing. A later job passes only

- on anything that is not set aside, or
- within it, if it is expected to be over before the machine's running jobs are expected to have
  left enough GPUs for the one that waits. Jobs of which nobody knows how long they run never pass.

So a job that passes never holds what a blocked one would otherwise have got by then. Once it holds
more than is free now, a set-aside keeps what becomes free: it is made anew at each pass, first.
Source: EASY backfilling (D. Lifka, The ANL/IBM SP scheduling system, 1995), with a reservation for
more than the head as in conservative backfilling, where it has waited.
"""

from collections.abc import Iterable, Sequence

from esnode.placing.machine import MachinePlace
from esnode.placing.need import PRIORITY_MAX, Need

AGEING_SECONDS = 600.0
"""For one level more. A job of priority 0 is at the highest that age reaches after 70 minutes (a
choice of ours: longer than most short jobs run, shorter than a working day)."""
AGED_PRIORITY_MAX = PRIORITY_MAX - 2
"""The two above are for what must not wait behind anything, however old."""
RESERVING_SECONDS = 900.0
"""From here on a blocked job sets something aside even if it is not the head."""
RESERVATIONS_MAX = 4
"""So many jobs at once: each keeps GPUs idle."""


def effective_priority(need: Need, now: float) -> int:
    """What it counts as in the queue; a broken promise of resumption counts as the oldest age."""
    if need.priority > AGED_PRIORITY_MAX:
        return need.priority
    if need.promised_at_seconds is not None and now >= need.promised_at_seconds:
        return AGED_PRIORITY_MAX
    levels = int(max(0.0, now - need.waiting_since_seconds) // AGEING_SECONDS)
    return min(need.priority + levels, AGED_PRIORITY_MAX)


def order(needs: Iterable[Need], now: float) -> list[Need]:
    """Who is asked first."""
    return sorted(
        needs,
        key=lambda need: (
            not need.room_node,
            -effective_priority(need, now),
            need.waiting_since_seconds,
            need.job,
        ),
    )


def sets_aside(need: Need, already: int, now: float) -> bool:
    """Whether a job that has found no place keeps one, where `already` others before it do."""
    if already == 0:
        return True
    waited = now - need.waiting_since_seconds
    return already < RESERVATIONS_MAX and waited >= RESERVING_SECONDS


def ready_at_seconds(machine: MachinePlace, gpus: Sequence[str], missing_count: int) -> float:
    """When so many more of these GPUs will be free; infinite where nobody expects it."""
    ends = {
        uuid: float("inf") if job.ends_at_seconds is None else job.ends_at_seconds
        for job in machine.running
        for uuid in job.gpus
    }
    held = sorted(ends[uuid] for uuid in gpus if uuid in ends)
    return held[missing_count - 1] if 0 < missing_count <= len(held) else float("inf")


def may_pass(need: Need, ready_at: float, now: float) -> bool:
    """Whether a job is expected to be over before what is set aside is needed."""
    if need.runs_for_seconds is None or ready_at == float("inf"):
        return False
    return now + need.runs_for_seconds <= ready_at
