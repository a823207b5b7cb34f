"""The rules of actuators with their edges: the audit, what is remembered, and the kill switch.

Its own file because here, and nowhere else, a verdict becomes leave to act: the line in the audit
is on disk first, and where that fails nothing is done. Pauses are files, `PAUSED` for everything
and `PAUSED.FEATURE` for one: a person may touch one, commands make and remove them with the agent
up or down, and they outlive everything. They are looked at four times a second, and again before
each deed. It must not know what any action does.
"""

import contextlib
import json
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
import trio

from cluster.identity.files import IdentityUnusable, replace_file
from esnode.acting.keeping import BadMemory, decode_memory, encode_memory
from esnode.acting.leases import Lease, LeaseKind, Leases
from esnode.acting.rules import EVERYTHING, Memory, Pause, Rules
from esnode.acting.words import (
    PREEMPTION,
    THERMAL,
    Do,
    Feature,
    Mode,
    Proposal,
    Result,
    Skip,
    Ticket,
    Verdict,
    Would,
)
from esnode.audit import AuditFailed, AuditJournal
from esnode.audit.entries import entry_after, entry_before, entry_note, entry_would
from esnode.audit.files import FOLDER
from esnode.clock import boottime_seconds, monotonic_seconds, unix_seconds
from esnode.config import Config
from esnode.pauses import end_pause, make_pause, read_pauses

log = structlog.get_logger("esnode.acting")

T = TypeVar("T")

MEMORY = "memory.json"
LOOK_SECONDS = 0.25
STEP_SECONDS = 2.0
"""More than that between two clocks in a quarter of a second is a step, or a sleep."""
RETRY_SECONDS = 10.0

Restore = Callable[[Lease], Awaitable[bool]]
"""Puts back what a lease changed; whether it is as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """What is needed to see that one of them stepped, or that the machine slept."""

    boottime: Callable[[], float]
    monotonic: Callable[[], float]
    unix: Callable[[], float]


class Acting:
    """The rules of one node. Nothing is opened or written before `run`."""

    def __init__(
        self,
        features: tuple[Feature, ...],
        modes: Mapping[str, Mode],
        state_folder: Path,
        *,
        clocks: Clocks,
        tell: Callable[[str], None],
        restores: Mapping[LeaseKind, Restore] | None = None,
    ) -> None:
        """Prepare. `tell` is called with each alarm, in one line."""
        self.folder = state_folder / FOLDER
        self.rules = Rules(features, modes, now=clocks.boottime())
        self.leases = Leases()
        self.trouble = "the rules have not been read yet"
        """Why nothing is done, whatever the rules say; empty while all is well."""
        self._features, self._modes = features, modes
        self._audit = AuditJournal(self.folder, clocks.unix)
        self._clocks = clocks
        self._tell = tell
        self._restores = dict(restores or {})
        self._held: dict[str, Pause] = {}
        """Pauses whose file could not be made: they hold until somebody ends them."""
        self._retry_at: dict[str, float] = {}
        """When a lease that could not be put back is tried again."""
        self._limiter = trio.CapacityLimiter(1)

    @property
    def now(self) -> float:
        """On the clock of the rules."""
        return self._clocks.boottime()

    def rules_line(self, feature: str) -> str:
        """Why a feature is not to act now, in one line; empty where it is."""
        if self.trouble:
            return self.trouble
        mode = self.rules.mode(feature)
        if mode is not Mode.ENFORCE:
            return f"control_{feature} is {mode.value}"
        pause = self.rules.pause_of(feature)
        return "" if pause is None else f"{feature} is paused: {pause.reason or 'no reason given'}"

    # -- running ----------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read what was kept, then watch the switch, the clocks and the leases, until cancelled."""
        await self._begin()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signal)
            task_status.started()
            await self._watch()

    async def _begin(self) -> None:
        memory, leases, bad = await self._in_thread(self._read_memory)
        now = self.now
        self.rules = Rules(self._features, self._modes, now=now, memory=memory)
        self.leases = Leases(leases)
        self.trouble = ""
        await self.look()
        if bad:
            reason = f"{MEMORY} cannot be read ({bad}); look at the audit before you resume"
            await self.pause(EVERYTHING, reason=reason, by="agent")
            self._alarm(reason)
        for ticket, target in self.rules.interrupted:
            line = f"{ticket} was being done when the agent ended: how it went is unknown"
            await self._note(line, id=ticket, target=target, result=Result.UNKNOWN.value)
        await self._keep()
        log.info(
            "control_modes", **{name: self.rules.mode(name).value for name in self.rules.features}
        )

    def _read_memory(self) -> tuple[Memory, tuple[Lease, ...], str]:
        path = self.folder / MEMORY
        now, unix = self.now, self._clocks.unix()
        try:
            document = json.loads(path.read_bytes())
            if not isinstance(document, dict):
                raise BadMemory("it is no object")
            saved = document.get("saved_at_unix_seconds")
            elapsed = unix - saved if isinstance(saved, int | float) else 0.0
            return *decode_memory(document, now=now, elapsed_seconds=elapsed), ""
        except FileNotFoundError:
            return Memory(), (), ""
        except (OSError, ValueError, RecursionError) as error:
            with contextlib.suppress(OSError):
                path.replace(path.with_name(f"{MEMORY}.unreadable"))
            # Ids go on where no older one can be.
            return Memory(last_number=int(unix)), (), str(error)

    async def _watch(self) -> None:
        ahead = self._offsets()
        while True:
            await trio.sleep(LOOK_SECONDS)
            offsets = self._offsets()
            if any(abs(a - b) > STEP_SECONDS for a, b in zip(offsets, ahead, strict=True)):
                self.rules.unsettle(self.now)
                await self._note("the clock stepped or the machine slept: nothing is done for 60 s")
            ahead = offsets
            await self.look()
            for lease in self.leases.expired(self.now):
                if self.now >= self._retry_at.get(lease.id, 0.0):
                    await self._put_back(lease)

    def _offsets(self) -> tuple[float, float]:
        boottime = self._clocks.boottime()
        return boottime - self._clocks.monotonic(), self._clocks.unix() - boottime

    async def _watch_signal(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGUSR2) as received:
            task_status.started()
            async for _ in received:
                await self.pause(EVERYTHING, reason="SIGUSR2", by="a signal")

    # -- the switch -------------------------------------------------------------------------------

    async def look(self) -> None:
        """See which pauses there are now."""
        found = await self._in_thread(read_pauses, self.folder)
        pauses = {**self._held, **found}
        before, self.rules.memory.pauses = self.rules.memory.pauses, pauses
        for name in pauses.keys() - before.keys():
            pause = pauses[name]
            await self._note(f"paused: {name or 'everything'}", by=pause.by, reason=pause.reason)
        for name in before.keys() - pauses.keys():
            await self._note(f"resumed: {name or 'everything'}")

    async def pause(self, feature: str, *, reason: str, by: str) -> str:
        """Stop a feature, or `EVERYTHING`; returns trouble in one line, or nothing."""
        pause = Pause(reason=reason, by=by, at_unix_seconds=self._clocks.unix())
        trouble = await self._in_thread(make_pause, self.folder, feature, pause)
        if trouble:
            self._held[feature] = pause
        await self.look()
        return trouble

    async def resume(self, feature: str, *, by: str) -> str:
        """Let a feature act again, or `EVERYTHING`; returns trouble in one line, or nothing."""
        names = [feature] if feature else [EVERYTHING, *self.rules.features]
        trouble = ""
        for name in names:
            self._held.pop(name, None)
            trouble = await self._in_thread(end_pause, self.folder, name) or trouble
        await self.look()
        if not trouble:
            self.rules.resume(feature)
            await self._note(f"an operator resumed {feature or 'everything'}", by=by)
            await self._keep()
        return trouble

    async def undo(self, lease_id: str | None, *, by: str) -> tuple[Lease, ...]:
        """Have one lease, or all (None), put back; returns those still held after it."""
        ended = self.leases.end(lease_id, self.now)
        for lease in ended:
            await self._note(f"an operator undoes {lease.line}", id=lease.id, by=by)
            await self._put_back(lease)
        return tuple(one for one in self.leases.all if one.id in {lease.id for lease in ended})

    # -- acting -----------------------------------------------------------------------------------

    async def judge(self, proposal: Proposal) -> Verdict:
        """Whether this may be done. After `Do` its line is on disk; tell `done` how it went."""
        if self.trouble:
            return Skip(reason="settling", line=self.trouble)
        if self.rules.mode(proposal.feature) is Mode.ENFORCE:
            await self.look()
        verdict = self.rules.judge(proposal, self.now)
        match verdict:
            case Skip(alarm=alarm) if alarm:
                self._alarm(alarm)
                await self._note(alarm, feature=proposal.feature)
                await self._keep()
            case Would():
                with self._telling():
                    await self._in_thread(self._audit.add, entry_would(proposal, verdict))
            case Do(ticket=ticket):
                return await self._write_before(ticket, verdict)
            case _:
                pass
        return verdict

    async def _write_before(self, ticket: Ticket, verdict: Do) -> Verdict:
        try:
            await self._in_thread(self._audit.add, entry_before(ticket, by="agent"))
        except AuditFailed as error:
            self.rules.cancel(ticket)
            return Skip(reason="no-audit", line=f"not done: {error}")
        if not await self._keep():
            self.rules.cancel(ticket)
            await self._note(f"{ticket.id} was not done: {MEMORY} cannot be written", id=ticket.id)
            return Skip(reason="no-audit", line=f"not done: {self.folder / MEMORY} is not written")
        return verdict

    async def done(
        self,
        ticket: Ticket,
        result: Result,
        *,
        read_back: str = "",
        effect: str = "",
        has_effect: bool | None = None,
    ) -> None:
        """How it went, once: when the effect has been seen, or there is no more waiting for it."""
        now = self.now
        alarm = self.rules.done(ticket, result, has_effect=has_effect, now=now)
        fields = entry_after(
            ticket,
            result,
            read_back=read_back,
            effect=effect,
            has_effect=has_effect,
            latency_seconds=now - ticket.at_seconds,
        )
        with self._telling():
            await self._in_thread(self._audit.add, fields)
        if alarm:
            self._alarm(alarm)
            await self._note(alarm, feature=ticket.proposal.feature)
        await self._keep()

    async def lend(self, lease: Lease) -> bool:
        """Keep a lease, before its change is made; False where it could not be kept: do not."""
        self.leases.take(lease)
        if await self._keep():
            return True
        self.leases.put_back(lease.id)
        return False

    async def _put_back(self, lease: Lease) -> None:
        restore = self._restores.get(lease.kind)
        if restore is None or not await restore(lease):
            self._retry_at[lease.id] = self.now + RETRY_SECONDS
            return  # it stays
        self._retry_at.pop(lease.id, None)
        self.leases.put_back(lease.id)
        await self._note(f"put back {lease.line}", id=lease.id, target=lease.target)
        await self._keep()

    # -- disks ------------------------------------------------------------------------------------

    async def _keep(self) -> bool:
        document = encode_memory(self.rules.memory, self.leases.all, self.now)
        document["pauses"] = {}  # they are files
        document["saved_at_unix_seconds"] = self._clocks.unix()
        content = json.dumps(document).encode()
        try:
            await self._in_thread(self._replace_memory, content)
        except (IdentityUnusable, OSError) as error:
            log.warning("control_memory_not_written", detail=str(error))
            return False
        return True

    def _replace_memory(self, content: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self.folder / MEMORY, content)

    async def _note(self, line: str, **fields: object) -> None:
        log.info("control", line=line)
        with self._telling():
            await self._in_thread(self._audit.add, entry_note(line, **fields))

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """A line that does not go to disk is told, and stops nothing that is done already."""
        try:
            yield
        except AuditFailed as error:
            log.warning("control_audit_not_written", detail=str(error))

    def _alarm(self, line: str) -> None:
        log.warning("control_alarm", line=line)
        self._tell(line)

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await trio.to_thread.run_sync(partial(call, *arguments), limiter=self._limiter)


def make_acting(
    config: Config,
    state_folder: Path,
    tell: Callable[[str], None],
    restores: Mapping[LeaseKind, Restore] | None = None,
) -> Acting:
    """The rules of this machine, as the configuration has them; nothing is opened or written."""
    return Acting(
        (
            replace(THERMAL, per_hour_count=config.control_thermal_per_hour),
            replace(PREEMPTION, per_hour_count=config.control_preemption_per_hour),
        ),
        {
            THERMAL.name: Mode(config.control_thermal),
            PREEMPTION.name: Mode(config.control_preemption),
        },
        state_folder,
        clocks=Clocks(boottime=boottime_seconds, monotonic=monotonic_seconds, unix=unix_seconds),
        tell=tell,
        restores=restores,
    )
