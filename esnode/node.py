"""The composition root: everything is built here from the configuration, and run in one nursery.

One tick is a paragraph: collect (in its own loops) -> `Agent.tick` -> post. The rest is the server,
the signals and an orderly end.
"""

import gc
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog
import trio

from esnode import __version__
from esnode import log as log_setup
from esnode.acting_means import make_acting
from esnode.agent import Agent, Change
from esnode.api.control import make_control_app
from esnode.api.door import door_of
from esnode.api.front import with_metrics
from esnode.api.read import make_app
from esnode.api.rules import add_rules_orders, add_rules_view
from esnode.api.server import Server, TlsUnusable
from esnode.board import Board
from esnode.clock import monotonic_seconds, unix_seconds
from esnode.cluster_stats import count_cluster
from esnode.cluster_view import ClusterView
from esnode.collect import Collection
from esnode.config import KEYS, Config, ConfigError, LoadedConfig, state_directory
from esnode.control_socket import (
    ControlSocketUnusable,
    caller_of,
    close_control_socket,
    is_allowed,
    open_control_socket,
)
from esnode.control_stats import count_control
from esnode.digest import digest
from esnode.heat_watch import HeatWatch
from esnode.job_stats import count_jobs
from esnode.listener import ListenError, open_sockets
from esnode.peering import Peering
from esnode.plan import Hardware, make_plan, settings_of
from esnode.power_parts import make_powering
from esnode.power_stats import count_power
from esnode.serving import Counts, Serving
from esnode.snapshot import Snapshot
from esnode.state import StateFolder, StateUnusable
from esnode.work_parts import make_workloads
from esnode.worker import Clock
from esnode.workloads.book import Job

log = structlog.get_logger("esnode")

TICK_SECONDS = 1.0
FIRST_TICK_SECONDS = 0.15
"""By then every healthy source has answered once."""
STOP_SECONDS = 1.5
"""All of an orderly end must fit, since supervisors and operators wait for it."""

QUICK_SECONDS = 60.0
"""For so long after the last reason to it, draws and GPUs are still read often."""

GRACE_SECONDS = 0.2
"""Lets streams and scrapes in flight end by themselves."""

Show = Callable[[Sequence[str], bytes], None]
"""(addresses, status document as JSON): draws them somewhere."""


class Node:
    """One running agent. Opens nothing before `run`."""

    def __init__(
        self,
        loaded: LoadedConfig,
        *,
        reload: Callable[[], LoadedConfig],
        environment: Mapping[str, str],
        clock: Clock = monotonic_seconds,
        collection: Collection | None = None,
        show: Show | None = None,
    ) -> None:
        self.config = loaded.config
        self.addresses: list[str] = []
        """Where it listens, once it does: base URLs."""
        self._reload = reload
        self._show = show
        self._state_path = state_directory(loaded.config, environment)
        self._board = Board(run_id=f"{int(unix_seconds() * 1000):x}")
        self._agent = Agent(settings_of(loaded.config))
        self._collection = collection or Collection(clock=clock)
        self._clock = clock
        self._hardware = Hardware(loaded.config, environment)
        self._counts = Counts()
        self._event_number = 0
        self._last_read_at = -1.0
        self._stop = trio.Event()
        self._replan = trio.Event()
        self._is_quick = False
        self._quick_until = 0.0
        self.power = make_powering(
            loaded.config, self._hardware, self._state_path, partial(self._tell, "power")
        )
        self.peering = Peering(
            state_folder=self._state_path,
            config=loaded.config,
            agent_version=__version__,
            power=self.power,
        )
        self.acting = make_acting(loaded.config, self._state_path, partial(self._tell, "control"))
        self.heat = HeatWatch(self.acting.rules_line, partial(self._tell, "heat"))
        self.work = make_workloads(
            loaded.config,
            self._hardware,
            self._state_path,
            self.power,
            self.acting.rules_line,
            self.heat,
            self._tell_work,
        )
        self._view = ClusterView(self.peering)
        self._serving = Serving(
            loaded.config,
            self._counts,
            self._board,
            lambda: count_cluster(self.peering),
            lambda: count_power(self.power),
            lambda: count_jobs(self.work),
            lambda: count_control(self.acting.rules, self.acting.now),
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until told to stop. Ready when the addresses are bound.

        Raises:
            ListenError: the address cannot be had.
            StateInUse: another agent has the state folder.
        """
        state = self._take_state_folder()
        try:
            await self._run(open_sockets(self.config.listen_address), state, task_status)
        finally:
            if state is not None:
                state.close()

    def _take_state_folder(self) -> StateFolder | None:
        try:
            return StateFolder(self._state_path)
        except StateUnusable as error:
            # Telemetry needs no state: an agent in a read-only container still serves.
            log.warning("state_dir_unusable", detail=str(error))
            self.peering.explain_unusable(str(error))
            self.work.trouble = str(error)
            return None

    def _announce(self, state: StateFolder | None) -> None:
        if state is None:
            return
        try:
            state.announce(self.addresses, __version__)
        except StateUnusable as error:
            log.warning("state_dir_unusable", detail=str(error))

    async def _run(
        self,
        sockets: list[socket.socket],
        state: StateFolder | None,
        task_status: trio.TaskStatus[None],
    ) -> None:
        server = self._make_server()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signals)
            nursery.start_soon(self._collect)
            nursery.start_soon(self._tick_for_ever)
            await nursery.start(server.run, sockets)
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            if state is not None:
                await nursery.start(self.acting.run)  # it hears SIGUSR2
                nursery.start_soon(self.power.run)
                nursery.start_soon(self.peering.run)
                nursery.start_soon(self.work.run)
                nursery.start_soon(self._serve_control, state)
            self.addresses = [self._url(one) for one in sockets]
            self._announce(state)
            log.info("agent_started", version=__version__, addresses=self.addresses)
            task_status.started()
            await self._stop.wait()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_SECONDS
            self._board.close()
            self.peering.events.close()
            await server.close(grace_seconds=GRACE_SECONDS)
            nursery.cancel_scope.cancel()
        self._hardware.programs.close()
        await self._release()
        log.info("agent_stopped")

    def stop(self) -> None:
        """Begin an orderly end."""
        self._stop.set()

    # -- serving ----------------------------------------------------------------------------------

    def _make_server(self) -> Server:
        app = make_app(
            self._board, self.peering, self._view, self.power, self.work, door_of(self.config)
        )
        add_rules_view(app, self.acting)
        try:
            return Server(
                with_metrics(self._board, app),  # type: ignore[arg-type]  # plain dicts
                certificate_path=self.config.tls_certificate_path,
                key_path=self.config.tls_key_path,
            )
        except TlsUnusable as error:
            raise ListenError(
                f"tls_certificate_path, tls_key_path: {error}; HTTPS needs a PEM certificate chain "
                "and its key"
            ) from None

    async def _serve_control(self, state: StateFolder) -> None:
        """Take orders on the socket in the state folder."""
        try:
            opened = open_control_socket(state.path)
        except ControlSocketUnusable as error:
            log.warning("control_socket_unusable", detail=str(error))
            return
        app = make_control_app(self.peering, self._view, self.power, self.work)
        add_rules_view(app, self.acting)
        add_rules_orders(app, self.acting)
        server = Server(app, is_allowed=is_allowed, caller_of=caller_of)  # type: ignore[arg-type]  # plain dicts
        try:
            await server.run([opened])
        finally:
            close_control_socket(opened, state.path)

    def _url(self, one: socket.socket) -> str:
        host, port = one.getsockname()[:2]
        scheme = "https" if self.config.tls_certificate_path else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    # -- collecting -------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Run the plan; start anew with the next one when the configuration changes."""
        while True:
            replan = self._replan = trio.Event()
            plan = make_plan(self.config, self._hardware, is_quick=self._is_quick)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._collection.run, plan)
                await replan.wait()
                nursery.cancel_scope.cancel()
            if not self.config.enable_gpu:
                await self._release()

    async def _release(self) -> None:
        """Close device files, so that a driver can be unloaded; a hung driver is left behind."""
        with trio.move_on_after(0.5, shield=True):
            await trio.to_thread.run_sync(
                self._hardware.release, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
            )

    # -- ticking ----------------------------------------------------------------------------------

    async def _tick_for_ever(self) -> None:
        due = self._clock() + FIRST_TICK_SECONDS
        while True:
            await trio.sleep(max(0.0, due - self._clock()))
            now = self._clock()
            self._counts.tick_lateness_seconds = now - due
            self._tick(now)
            self._show_latest()
            missed = int((self._clock() - due) / TICK_SECONDS)
            self._counts.ticks_skipped_total += missed
            due += (missed + 1) * TICK_SECONDS

    def _tick(self, now: float) -> None:
        reading = self._collection.reading()
        tick = self._agent.tick(reading, now=now)
        for change in tick.changes:
            _log_change(change)
        newest = max((s.last_success_at_seconds or 0.0 for s in reading.sources), default=0.0)
        if newest > self._last_read_at or tick.changes:
            self._last_read_at = newest
            self._event_number += 1
        self._serving.post(tick.snapshot, number=self._event_number)
        self._tell_rack(tick.snapshot)

    def _tell_rack(self, snapshot: Snapshot) -> None:
        lag_seconds = self._counts.tick_lateness_seconds
        state = digest(snapshot, agent_version=__version__, loop_lag_seconds=lag_seconds)
        state = replace(state, jobs_running_count=self.work.running_count)
        self.power.tick(snapshot)
        self.heat.tick(snapshot, self._clock())
        self.work.tick(snapshot)
        self._pace()
        self.peering.publish(state)

    def _pace(self) -> None:
        """Read draws and GPUs more often while rack power governs, or jobs come and go."""
        now = self._clock()
        if self.power.means.gate.is_governed or self.work.is_any_held:
            self._quick_until = now + QUICK_SECONDS
        is_quick = now < self._quick_until
        if is_quick != self._is_quick:
            self._is_quick = is_quick
            self._replan.set()

    def _tell(self, kind: str, line: str) -> None:
        self.peering.events.add(kind, kind, reason=line)

    def _tell_work(self, kind: str, job: Job, line: str) -> None:
        self.peering.events.add("job", job.name, reason=f"{kind}: {line}")

    def _show_latest(self) -> None:
        latest = self._board.latest
        if self._show is not None and latest is not None:
            self._show(self.addresses, latest.status)

    # -- signals ----------------------------------------------------------------------------------

    async def _watch_signals(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGHUP:
                    self._apply_new_configuration()
                else:
                    log.info("agent_stopping", signal=signal.Signals(number).name)
                    self._stop.set()

    def _apply_new_configuration(self) -> None:
        """Load the configuration again; a bad one is refused whole and the old one stays."""
        try:
            loaded = self._reload()
        except ConfigError as error:
            self._counts.reload_failures_total += 1
            self._counts.is_last_reload_successful = False
            for problem in error.problems:
                log.error("reload_refused", problem=problem)
            return
        kept = self._keys_that_need_a_restart(loaded.config)
        for name in kept:
            log.warning("reload_needs_restart", key=name)
        self.config = replace(loaded.config, **{name: getattr(self.config, name) for name in kept})
        log_setup.configure(self.config.log_level, is_json=self.config.log_format == "json")
        self._agent.settings = settings_of(self.config)
        self._serving.change(self.config)
        self._counts.reloads_total += 1
        self._counts.is_last_reload_successful = True
        self._replan.set()
        log.info("reload_applied", file=str(loaded.file or ""))

    def _keys_that_need_a_restart(self, new: Config) -> list[str]:
        return [
            key.attribute
            for key in KEYS.values()
            if not key.is_reloadable
            and not key.is_dormant
            and getattr(new, key.attribute) != getattr(self.config, key.attribute)
        ]


def _log_change(change: Change) -> None:
    if change.after in ("failed", "stalled", "raised"):
        emit = log.warning
    elif change.before == "pending" and change.after == "ok":
        emit = log.debug  # as expected
    else:
        emit = log.info
    emit(
        "state_changed",
        subject=change.subject,
        before=change.before,
        after=change.after,
        **({"detail": change.detail} if change.detail else {}),
    )


def run_agent(
    loaded: LoadedConfig,
    *,
    reload: Callable[[], LoadedConfig],
    environment: Mapping[str, str],
    show: Show | None = None,
) -> None:
    """Run one agent in this process until it is told to stop. `show` is called every second."""
    log_setup.configure(loaded.config.log_level, is_json=loaded.config.log_format == "json")
    for name in loaded.dormant_keys_in_use():
        log.warning("key_has_no_effect", key=name)
    node = Node(loaded, reload=reload, environment=environment, show=show)
    gc.collect()
    gc.freeze()  # what start-up made stays: full collections need not walk it again
    trio.run(node.run)
