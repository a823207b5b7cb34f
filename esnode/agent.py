"""One node's agent: what it makes of each reading. The page to read first.

One tick is `collect -> Agent.tick -> post`. The agent is pure: it is handed a reading and the time,
and returns what follows. It reads no clock, no file and no driver, waits for nothing, and logs
nothing; `esnode.node` does that around it, and simulations do it in virtual time.
"""

from dataclasses import dataclass, field

from esnode.diagnose import Thresholds, diagnose
from esnode.fold.app import AppFold
from esnode.fold.gpu import GpuFold, total_draw_watts
from esnode.fold.host import HostFold
from esnode.fold.power import EnergyPrice, PowerFold
from esnode.readings.sample import Reading, SourceStatus
from esnode.snapshot import Flag, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What the operator may change while the agent runs."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    price: EnergyPrice = field(default_factory=EnergyPrice)
    envelope_watts: float | None = None
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that became so, or ceased to be so, in this tick: logged by the edge, once."""

    subject: str
    """``source`` or ``flag`` and its name."""
    before: str
    after: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The outcome of one tick."""

    snapshot: Snapshot
    changes: tuple[Change, ...] = ()


class Agent:
    """Folds readings into snapshots. One object per node; not shared between threads."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings
        self._host = HostFold()
        self._power = PowerFold()
        self._gpu = GpuFold()
        self._app = AppFold()
        self._sequence = 0
        self._source_states: dict[str, SourceStatus] = {}
        self._flags: dict[tuple[str, str], Flag] = {}

    def tick(self, reading: Reading, *, now: float) -> Tick:
        """Fold one reading. `now` is monotonic and never goes back between ticks."""
        snapshot = self._fold(reading, now=now)
        return Tick(
            snapshot=snapshot, changes=(*self._new_states(reading), *self._new_flags(snapshot))
        )

    def _fold(self, reading: Reading, *, now: float) -> Snapshot:
        self._sequence += 1
        settings = self.settings
        cpu, cpu_usage = self._host.fold_cpu(reading, now=now)
        rates = self._host.fold_rates(reading, now=now)
        gpus = self._gpu.fold(reading, now=now)
        power = self._power.fold(
            reading,
            cpu_utilization_ratio=cpu_usage.utilization_ratio,
            gpu_watts=total_draw_watts(reading, gpus, now=now),
            price=settings.price,
            envelope_watts=settings.envelope_watts,
            now=now,
        )
        app = self._app.fold(
            reading,
            node_energy_joules_total=power.node_energy_joules_total,
            price=settings.price,
            now=now,
        )
        return Snapshot(
            taken_at_seconds=now,
            sequence=self._sequence,
            sources=reading.sources,
            disabled=reading.disabled,
            cpu=cpu,
            cpu_usage=cpu_usage,
            memory=reading.memory.fresh(now) if reading.memory else None,
            disk=reading.disk.fresh(now) if reading.disk else None,
            filesystems=tuple(
                value
                for _, sample in sorted(reading.filesystems.items())
                if (value := sample.fresh(now)) is not None
            ),
            network=reading.network.fresh(now) if reading.network else None,
            rates=rates,
            numa=reading.numa.fresh(now) if reading.numa else None,
            power_reading=reading.power.fresh(now) if reading.power else None,
            ipmi=reading.ipmi.fresh(now) if reading.ipmi else None,
            power=power,
            gpu_inventory=reading.gpu.fresh(now) if reading.gpu else None,
            gpus=gpus,
            app=app,
            health=diagnose(rates, gpus, settings.thresholds),
            tags=settings.tags,
        )

    def _new_states(self, reading: Reading) -> list[Change]:
        changes = []
        for status in reading.sources:
            before = self._source_states.get(status.name)
            was = before.state if before else "pending"
            if status.state != was:
                changes.append(
                    Change(
                        subject=f"source {status.name}",
                        before=was,
                        after=status.state,
                        detail=status.reason,
                    )
                )
        present = {status.name: status for status in reading.sources}
        changes += [
            Change(subject=f"source {name}", before=status.state, after="gone")
            for name, status in self._source_states.items()
            if name not in present
        ]
        self._source_states = present
        return changes

    def _new_flags(self, snapshot: Snapshot) -> list[Change]:
        now_raised = {(flag.kind, flag.subject): flag for flag in snapshot.health.flags}
        if snapshot.power.is_envelope_exceeded and snapshot.power.node:
            flag = Flag(
                kind="power_envelope",
                subject="",
                detail=f"{snapshot.power.node.power_watts:.0f} W drawn, "
                f"{snapshot.power.envelope_watts:.0f} W allowed",
            )
            now_raised[flag.kind, ""] = flag
        changes = [
            Change(subject=_flag_name(flag), before="clear", after="raised", detail=flag.detail)
            for key, flag in now_raised.items()
            if key not in self._flags
        ]
        changes += [
            Change(subject=_flag_name(flag), before="raised", after="clear")
            for key, flag in self._flags.items()
            if key not in now_raised
        ]
        self._flags = now_raised
        return changes


def _flag_name(flag: Flag) -> str:
    return f"flag {flag.kind} {flag.subject}".rstrip()
