"""The part of this agent in a cluster, if it has one: from an identity on disk to a running host.

Its own file because an agent may join, leave, be renewed or be withdrawn while it runs, and because
whatever is wrong with the cluster (a port in use, a disk that refuses) must never end the agent: it
is told, and tried again. It must not know HTTP, nor what the documents look like.
"""

import random
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path

import structlog
import trio

from cluster import entry
from cluster.binding import BindError, open_both_sockets
from cluster.credentials import load_node
from cluster.durable import DurableFailed
from cluster.enrolment import NodeKeys, OpenedInvite, open_invite
from cluster.entry import EntryRefused, enter, has_left, is_node, renew_here
from cluster.errors import PeerFault
from cluster.gossip.effects import Rejected
from cluster.host import Host, HostSettings
from cluster.identity.chains import NodeIdentity
from cluster.identity.files import IdentityUnusable, node_folder
from cluster.identity.operator_records import read_signed_record
from cluster.identity.tokens import parse_token
from cluster.ids import NodeId, parse_node_name
from cluster.peer import Effect
from cluster.rack.model import NodeState
from cluster.rack.report import RACK, VIEW
from cluster.rack.wire import encode_node_state, encode_rack_state
from esnode.clock import boottime_seconds, unix_seconds
from esnode.cluster_events import ClusterEvents
from esnode.cluster_reports import own_summary, rack_reports, view_reports
from esnode.config import Config
from esnode.operator_text import record_line
from esnode.powering.driver import Powering

log = structlog.get_logger("esnode.cluster")

RETRY_SECONDS = 5.0
SUMMARY_SECONDS = 5.0
"""How often a rack's speaker tells the other racks."""
ADMISSION_SECONDS = 10.0
"""How long `join` waits for a member's countersignature before it says that none came."""
APPROVAL_SECONDS = 2.0
"""The same where an operator has to speak, who will not be as quick."""
KEEP_SECONDS = 3.0
"""For a disk to take an operator's record."""


class NotInCluster(Exception):
    """There is no running cluster here to ask; one line, and a word for programs."""

    def __init__(self, line: str, code: str = "no-cluster") -> None:
        super().__init__(line)
        self.code = code


class Peering:
    """The cluster as one agent has it."""

    def __init__(
        self,
        *,
        state_folder: Path,
        config: Config,
        agent_version: str,
        power: Powering | None = None,
    ) -> None:
        self._folder = state_folder
        self._config = config
        self._version = agent_version
        self._power = power
        self._changed = trio.Event()
        self._changing = trio.Lock()
        self._running = trio.CancelScope()
        self._summary_due_seconds = 0.0
        self.events = ClusterEvents(unix_seconds)
        self.host: Host | None = None
        self.trouble = "this agent is in no cluster; `esnode cluster join TOKEN` on this machine"
        """Why there is no running host, while that is so."""
        self.trouble_code = "no-cluster"
        self.own_state: NodeState | None = None
        """What this node told last."""
        self._names: dict[NodeId, str] = {}
        """Also of those that are out by now."""
        self.rejected_total: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        """Of events, by kind of change: `suspect`, `failed`, `refuted` ..."""

    # -- life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take part whenever there is an identity, until cancelled."""
        while True:
            self._changed = trio.Event()
            wait_seconds = await self._take_part()
            with trio.move_on_after(wait_seconds):
                await self._changed.wait()

    async def _take_part(self) -> float:
        """One life of a host; how long to wait for a change before the next."""
        folder = node_folder(self._folder)
        try:
            if not is_node(folder):
                self._explain(
                    "this agent is in no cluster; `esnode cluster join TOKEN` on this machine"
                )
                return float("inf")
            keys = await trio.to_thread.run_sync(load_node, folder)
            if has_left(folder):
                self._explain(
                    f"this agent has left cluster {keys.authority.name}; `esnode cluster join` "
                    "comes back"
                )
                return float("inf")
            await self._run_host(keys)
        except (BindError, DurableFailed, IdentityUnusable) as error:
            self._explain(str(error), code="cluster-unavailable", is_trouble=True)
            return RETRY_SECONDS
        finally:
            self.host = None
            if self._power is not None:
                self._power.end()
        # Whoever ended it may have been cut off before it could say so: look again.
        return float("inf") if self.trouble_code == "withdrawn" else 0.0

    async def _run_host(self, keys: NodeKeys) -> None:
        bind = self._config.cluster_bind
        sockets = open_both_sockets(bind.host, bind.port)
        try:
            host = self._make_host(keys, sockets)
            refused: DurableFailed | None = None
            with trio.CancelScope() as self._running:
                async with trio.open_nursery() as nursery:
                    try:
                        await nursery.start(host.run)
                        self._begin(host)
                    except DurableFailed as error:  # out of a nursery it would come as a group
                        refused = error
            if refused is not None:
                raise refused
            self._end(host)
        finally:
            for one in sockets:
                one.close()

    def _make_host(self, keys: NodeKeys, sockets: tuple[socket.socket, socket.socket]) -> Host:
        return Host(
            keys=keys,
            state_folder=self._folder,
            sockets=sockets,
            settings=HostSettings(
                advertise=self._config.cluster_advertise,
                seeds=self._config.cluster_seeds,
                agent_version=self._version,
            ),
            clock=boottime_seconds,
            unix_clock=unix_seconds,
            rng=random.Random(secrets.randbits(64)),
            hear=self._hear,
            answers={RACK: self.answer_rack, VIEW: self.answer_view},
        )

    def _begin(self, host: Host) -> None:
        self.host = host
        if self._power is not None:
            self._power.begin(host)
        self.trouble, self.trouble_code = "", ""
        identity = host.keys.identity
        log.info(
            "cluster_joined",
            cluster=host.keys.authority.name,
            node=identity.name,
            rack=identity.rack,
            address=host.address,
        )
        self.events.add("self", identity.name, after="alive", reason=f"began at {host.address}")

    def _end(self, host: Host) -> None:
        if host.withdrawn is not None:
            line = f"{host.withdrawn}; `esnode cluster join TOKEN` makes it a node under a new key"
            self._explain(line, code="withdrawn", is_trouble=True)
        else:
            self._explain("the cluster part of this agent begins anew", code="starting")

    def explain_unusable(self, line: str) -> None:
        """Say that there is no state folder, so that there can be no node."""
        self._explain(f"state_dir: {line}; without it this agent is in no cluster")

    def _explain(self, line: str, *, code: str = "no-cluster", is_trouble: bool = False) -> None:
        if is_trouble and line != self.trouble:
            log.warning("cluster_unavailable", detail=line)
        self.trouble, self.trouble_code = line, code

    def _hear(self, effect: Effect) -> None:
        if self._power is not None:
            self._power.hear(effect)
        if isinstance(effect, Rejected):
            reason = str(effect.reason)
            self.rejected_total[reason] = self.rejected_total.get(reason, 0) + 1
            return
        event = self.events.hear(effect, self.name_of)
        if event is None:
            return
        kind = str(event["after"] or event["kind"])
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if event["reason"] == "refuted":
            self.counts["refuted"] = self.counts.get("refuted", 0) + 1
        shown = {name: value for name, value in event.items() if value and name not in ("id", "at")}
        log.info("cluster_event", **{f"event_{name}": value for name, value in shown.items()})

    def name_of(self, node_id: NodeId) -> str:
        """What a node is called; its short id while no certificate is known."""
        identity = None if self.host is None else self.host.peer.roster.identity_of(node_id)
        if identity is not None:
            self._names[node_id] = identity.name
        return self._names.get(node_id, node_id.short)

    # -- each tick --------------------------------------------------------------------------------

    def publish(self, state: NodeState) -> None:
        """Tell the rack how this node is; its speaker also tells the others how the rack is."""
        power = self._power
        self.own_state = state = state if power is None else power.dress(state)
        host = self.host
        if host is None or host.withdrawn is not None:
            return
        summary = None
        if host.now >= self._summary_due_seconds and host.view().gossip.is_speaker:
            self._summary_due_seconds = host.now + SUMMARY_SECONDS
            summary = encode_rack_state(own_summary(host, state, self.budget_watts))
        host.publish(encode_node_state(state), summary)

    @property
    def budget_watts(self) -> float | None:
        """Of this node's rack, as operators decreed it."""
        return None if self._power is None else self._power.budget_watts

    # -- what members ask -------------------------------------------------------------------------

    async def answer_rack(self, asker: NodeIdentity, body: bytes) -> Iterable[bytes]:
        """How the nodes of this rack are.

        Raises:
            PeerFault: this node takes no part, or not yet.
        """
        return rack_reports(self._asked(), self.own_state)

    async def answer_view(self, asker: NodeIdentity, body: bytes) -> Iterable[bytes]:
        """What this node takes everybody for.

        Raises:
            PeerFault: as for the rack.
        """
        return view_reports(self._asked())

    def _asked(self) -> Host:
        try:
            return self.running()
        except NotInCluster as error:
            raise PeerFault(str(error)) from None  # any other error ends the server of streams

    def running(self) -> Host:
        """The host.

        Raises:
            NotInCluster: there is none.
        """
        if self.host is None or self.host.withdrawn is not None:
            raise NotInCluster(self.trouble, self.trouble_code)
        return self.host

    # -- orders -----------------------------------------------------------------------------------

    async def join(self, token: str, name: str | None) -> tuple[NodeKeys, bool]:
        """Become a node; whether a member has let it in by the time this returns.

        Raises:
            PeerFault: the token does not hold, or this machine is a node already.
            IdentityUnusable: the disk refuses.
        """
        invite = open_invite(parse_token(token))
        chosen = parse_node_name(name or socket.gethostname().lower())
        async with self._changing:
            self._make_room(invite)
            keys = enter(
                node_folder(self._folder),
                invite,
                chosen,
                now_unix_seconds=int(unix_seconds()),
                random_bytes=secrets.token_bytes,
            )
        self._changed.set()
        return keys, await self._admitted(keys)

    async def rejoin(self) -> tuple[NodeKeys, bool]:
        """Come back under the identity that was kept.

        Raises:
            EntryRefused: there is none, or this node has not left.
            IdentityUnusable: the disk refuses.
        """
        folder = node_folder(self._folder)
        async with self._changing:
            if not is_node(folder):
                raise EntryRefused("this machine has left no cluster; join needs a TOKEN")
            keys = load_node(folder)
            if not has_left(folder):
                raise EntryRefused(
                    f"this machine is {keys.identity.name} of cluster {keys.authority.name} already"
                )
            entry.unmark_left(folder)
        self._changed.set()
        return keys, await self._admitted(keys)

    async def leave(self) -> int:
        """Say good-bye and stay away; how many peers confirmed.

        Raises:
            NotInCluster: there is nothing to leave.
            IdentityUnusable: the disk refuses; nothing was said.
        """
        host = self.running()
        async with self._changing:
            entry.mark_left(node_folder(self._folder))
            informed = await host.leave()
        self._changed.set()
        self.events.add("self", host.keys.identity.name, after="left", reason="asked to")
        return informed

    async def renew(self, token: str) -> tuple[NodeKeys, bool]:
        """Take a new certificate for this node's key; whether a member has accepted it by then.

        Raises:
            PeerFault: the token does not hold.
            IdentityUnusable: the disk refuses.
        """
        invite = open_invite(parse_token(token))
        async with self._changing:
            keys = renew_here(
                node_folder(self._folder),
                invite,
                now_unix_seconds=int(unix_seconds()),
                random_bytes=secrets.token_bytes,
            )
        self._running.cancel()  # a new life shows the new certificate to everybody
        self._changed.set()
        return keys, await self._admitted(keys)

    async def hear_operator(self, payload: bytes, signature: bytes) -> str:
        """A record that this machine's operator signed; what it says, once it stands on disk.

        Raises:
            NotInCluster: nobody is there to tell.
            PeerFault: it does not stand.
        """
        host = self.running()
        signed = read_signed_record(payload, signature)
        refused = host.hear_operator(signed)
        if refused is not None:
            raise PeerFault(refused)
        line = record_line(signed)
        if host.withdrawn is not None:
            return f"{line} (it withdrew this very node; members know)"
        trouble = None
        with trio.move_on_after(KEEP_SECONDS) as waiting:
            trouble = await host.kept()
        if waiting.cancelled_caught:
            trouble = "the disk does not answer"
        return line if trouble is None else f"{line} (told to members, not kept here: {trouble})"

    def _make_room(self, invite: OpenedInvite) -> None:
        """A withdrawn node's key is worth nothing any more: the next one gets another."""
        host = self.host
        is_withdrawn = self.trouble_code == "withdrawn" or (host and host.withdrawn is not None)
        if is_withdrawn and is_node(node_folder(self._folder)):
            entry.set_aside(self._folder, now_unix_seconds=int(unix_seconds()))

    async def _admitted(self, keys: NodeKeys) -> bool:
        """Wait for a member's word, or our own where we may found."""
        is_waiting = keys.identity.rights.terms.needs_approval
        with trio.move_on_after(APPROVAL_SECONDS if is_waiting else ADMISSION_SECONDS):
            while True:
                host = self.host
                is_same = host is not None and host.keys.identity == keys.identity
                if host is not None and is_same and host.is_accepted:
                    return True
                if self.trouble_code == "cluster-unavailable":
                    return False
                await trio.sleep(0.05)
        return False
