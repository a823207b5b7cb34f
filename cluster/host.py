"""Host: runs one Peer, with its datagrams, its streams, its disk and its names.

Its own file because it is the only one that knows all of a peer's edges; an agent, a benchmark and
a test all run a node of the cluster through it. The theory of operation:

1. Before anything is sent, what the last life left is read and the epoch is raised on disk
   (`keeping`). If that fails there is no gossip, and the caller is told why.
2. Effects of the peer come to `_carry_out` in order. Sending is the datagram driver's; exchanges,
   papers and heads are queued for tasks of their own, so that neither a slow peer nor a slow disk
   holds up a ping. While a new epoch is not on disk, nothing is sent: gossip repairs what is lost.
3. Names are looked up again every `LOOK_SECONDS`, and our own address with them.

It must not know what a state says, nor who looks at the view.
"""

import random
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import trio
import trio.lowlevel

from cluster import tls
from cluster.addresses import read_socket_address, split_address
from cluster.assembly import chain_of, make_peer
from cluster.conversation import PeerHello
from cluster.enrolment import NodeKeys
from cluster.errors import Malformed, PeerFault
from cluster.exchanges import Exchanges
from cluster.gate import Gate, unless_mute
from cluster.gossip.effects import LeaveEnded, PersistEpoch, PersistHeads
from cluster.gossip.messages import Address
from cluster.gossip.settings import GossipSettings
from cluster.identity.chains import NodeIdentity
from cluster.identity.files import node_folder
from cluster.identity.operator_records import SignedRecord
from cluster.identity.refusals import Rule
from cluster.keeping import Keeping
from cluster.papers import Chain, Paper, decode_request, encode_paper, encode_request
from cluster.peer import (
    Alarm,
    Effect,
    Exchange,
    PeerView,
    PersistPapers,
    Withdrawn,
)
from cluster.places import Announced, is_own_host, look_up, own_address
from cluster.stream import StreamClient, StreamLimits, StreamServer
from cluster.stream_frames import Hello
from cluster.udp import Datagrams
from cluster.wishes import Crowd, narrow_wish
from cluster.writing import Writing

PAPERS = "papers"
"""The kind of question that exchanges certificates, admissions and operators' records."""
LOOK_SECONDS = 30.0
LOOK_ALONE_SECONDS = 3.0
"""While nobody is known."""
REMEMBERED_SEEDS_MAX = 16
PAPERS_AT_ONCE = 256
"""Judged before anybody else has a turn: 50 ms, where all of a large cluster's take seconds."""
WITHDRAWN = (Rule.REVOKED, Rule.REMOVED)
"""Whoever is refused by these is told what operators have said, and nothing else."""

Answer = Callable[[NodeIdentity, bytes], Awaitable[Iterable[bytes]]]
"""What a member who asks is answered; raises `PeerFault` to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What the operator chose."""

    advertise: str | None = None
    """HOST or HOST:PORT where others find this node; None to find out."""
    seeds: tuple[str, ...] = ()
    """HOST:PORT, beside those that the invite named."""
    gossip: GossipSettings = field(default_factory=GossipSettings)
    agent_version: str = ""


class Host:
    """One node of a cluster, running."""

    def __init__(
        self,
        *,
        keys: NodeKeys,
        state_folder: Path,
        sockets: tuple[socket.socket, socket.socket],
        settings: HostSettings,
        clock: Callable[[], float],
        unix_clock: Callable[[], float],
        rng: random.Random,
        hear: Callable[[Effect], None],
        answers: Mapping[str, Answer] | None = None,
    ) -> None:
        """Prepare; `sockets` are those of datagrams and of streams, `hear` is told every effect."""
        self.keys = keys
        self._settings = settings
        self._clock = clock
        self._unix_clock = unix_clock
        self._rng = rng
        self._hear = hear
        self._answers = dict(answers or {})
        self._udp_socket, self._tcp_socket = sockets
        self._keeping = Keeping(state_folder)
        self._seed_names = tuple(dict.fromkeys((*settings.seeds, *keys.seeds)))
        self._seeds: tuple[Address, ...] = ()
        self._writing = Writing(self._keeping, lambda line: hear(Alarm(line=line)))
        self._left = trio.Event()
        self._crowd = Crowd()
        self.informed_count = 0
        self.withdrawn: str | None = None
        """Why an operator withdrew this node."""
        self.observed: dict[Address, str] = {}
        """By peer: the host at which it saw our calls come from; the latest last."""
        folder = node_folder(state_folder)
        self._chain = chain_of(keys)
        limits = StreamLimits(connections_per_source_max=32)
        self.stream_server = StreamServer(
            context=tls.server_context(folder, keys.authority),
            introduce=self._introduce,
            answer=self._answer,
            limits=limits,
        )
        self.stream_client = StreamClient(
            context=tls.client_context(folder, keys.authority),
            introduce=self._introduce,
            bind_host=split_address(_bound(self._udp_socket))[0],
            limits=limits,
        )
        self._exchanges = Exchanges(
            self._exchange, self._narrow, lambda: self.stream_client.kept_address
        )
        self._announced = Announced(_bound(self._udp_socket), settings.advertise)
        self._address = own_address(_bound(self._udp_socket), None, ())

    # -- life -------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take part until cancelled, or until this node has left.

        Raises:
            DurableFailed: the disk refuses before anything was sent.
        """
        remembered = await trio.to_thread.run_sync(
            self._keeping.begin, self.keys.identity.node_id, abandon_on_cancel=True
        )
        for note in remembered.notes:
            self._hear(Alarm(line=note))
        self._seeds = await look_up(self._seed_names)
        self._address = await self._find_address()
        known = sorted(remembered.addresses.values())
        self._remembered_seeds = tuple(
            self._rng.sample(known, min(REMEMBERED_SEEDS_MAX, len(known)))
        )
        # In a thread: all papers on disk are judged again, 0.3 ms each.
        make = partial(make_peer, self.keys, remembered, address=self._address)
        make = partial(make, settings=self._settings.gossip, rng=self._rng)
        self.peer = await trio.to_thread.run_sync(partial(make, seeds=self._all_seeds()))
        self.datagrams = Datagrams[Effect](
            udp_socket=self._udp_socket,
            core=Gate(self.peer, self._writing),
            carry_out=self._carry_out,
            clock=self._clock,
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(self.stream_server.run, [self._tcp_socket])
            nursery.start_soon(self.stream_client.run)
            nursery.start_soon(self._exchanges.run)
            nursery.start_soon(self._writing.run)
            nursery.start_soon(self._look_for_ever)
            now = self._clock()
            self.submit(self.peer.start(now, now_unix_seconds=int(self._unix_clock())))
            if self.withdrawn is None:
                nursery.start_soon(self.datagrams.run)
            task_status.started()
            await self._left.wait()
            nursery.cancel_scope.cancel()

    async def leave(self) -> int:
        """Say good-bye; how many peers confirmed that they know."""
        self.submit(self.peer.leave(self._clock()))
        await self._left.wait()
        return self.informed_count

    @property
    def address(self) -> Address:
        """Where others are told to find us."""
        return self._address

    @property
    def is_accepted(self) -> bool:
        """Whether the certificate of this life has been accepted by a member."""
        return self._is_in(self._chain)

    @property
    def last_failure(self) -> str | None:
        """Why the latest exchange over a stream failed; None after one that went well."""
        return self._exchanges.last_failure

    @property
    def disk_trouble(self) -> str | None:
        """Why something could not be kept, in one line, while that is so."""
        return self._writing.trouble

    async def kept(self) -> str | None:
        """Wait for the disk (`Writing.kept`)."""
        return await self._writing.kept()

    def view(self) -> PeerView:
        """What this node knows of its cluster now."""
        return self.peer.view(self._clock())

    def observed_elsewhere(self) -> str | None:
        """Where most peers see our calls come from, if that is not where we say that we are."""
        seen = Counter(self.observed.values()).most_common(1)
        own, _ = split_address(self._address)
        if not seen or seen[0][0] == own:
            return None
        if is_own_host(seen[0][0]) and is_own_host(own):
            return None  # a machine of several addresses calls from whichever is nearest
        return seen[0][0]

    @property
    def now(self) -> float:
        """By the clock that the peer is driven by."""
        return self._clock()

    # -- requests ---------------------------------------------------------------------------------

    def publish(self, state: bytes, summary: bytes | None) -> None:
        """Tell the rack how this node is, and the other racks how the rack is."""
        now = self._clock()
        self.submit(self.peer.publish_state(state, now))
        if summary is not None:
            self.submit(self.peer.publish_summary(summary, now))

    def show(self, papers: Iterable[Paper]) -> None:
        """Spread papers of this node: a renewed certificate."""
        self.submit(self.peer.show(papers, self._clock()))

    def hear_operator(self, record: SignedRecord) -> str | None:
        """A record that this machine's operator handed in; why it does not stand, or None."""
        effects, refused = self.peer.hear_operator(record, self._clock())
        self.submit(effects)
        return None if refused is None else refused.line

    async def ask(self, address: Address, kind: str, body: bytes = b"") -> tuple[bytes, ...]:
        """Ask another member something over the stream.

        Raises:
            StreamFailed: there is no answer; one line.
        """
        answer = await self.stream_client.ask(address, kind, body)
        return answer.parts

    def submit(self, effects: Iterable[Effect]) -> None:
        """Carry out what the peer returned."""
        self.datagrams.submit(unless_mute(effects, self._writing))

    # -- effects ----------------------------------------------------------------------------------

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Exchange():
                self._exchanges.want(effect)
            case PersistPapers(papers=papers):
                self._writing.keep_papers(papers)
            case PersistHeads(heads=heads):
                members = self.view().gossip.members
                addresses = {one.node_id: one.address for one in members if one.address}
                self._writing.keep_heads(heads, addresses)
            case PersistEpoch(epoch=epoch):
                self._writing.keep_epoch(epoch)
            case LeaveEnded(informed_count=count):
                self.informed_count = count
                self._left.set()
            case Withdrawn(reason=reason):
                self.withdrawn = reason
                self._left.set()
            case _:
                pass
        self._hear(effect)

    # -- streams ----------------------------------------------------------------------------------

    def _introduce(self, seen: Address) -> Hello:
        return Hello(
            certificate=self._chain.node_der,
            issuer_certificate=self._chain.issuer_der,
            advertised=self._address,
            seen=seen,
            agent_version=self._settings.agent_version,
        )

    async def _answer(self, caller: PeerHello, kind: str, body: bytes) -> Iterable[bytes]:
        """Judge who asks, and answer."""
        hello = caller.hello
        chain = Chain(node_der=hello.certificate, issuer_der=hello.issuer_certificate)
        request = decode_request(body) if kind == PAPERS else None
        was_in = self._is_in(chain)
        meeting = self.peer.meet(
            chain,
            hello.advertised or None,
            () if request is None else request.offered,
            self._clock(),
            now_unix_seconds=int(self._unix_clock()),
        )
        self.submit(meeting.effects)
        if meeting.refused is not None:
            if request is not None and meeting.refused.rule in WITHDRAWN:
                return self.peer.give_records(request)
            raise PeerFault(meeting.refused.line)
        if request is not None:
            if self._is_in(chain) and not was_in and not request.node_ids:
                await self._wait_for_others()
                if not self._is_in(chain):  # withdrawn meanwhile
                    return self.peer.give_records(request)
            return self.peer.give(request)
        answer = self._answers.get(kind)
        if answer is None:
            raise PeerFault(f"this agent does not answer {kind!r}; update it")
        return await answer(self.peer.identity_of(chain), body)

    async def _wait_for_others(self) -> None:
        until = self._crowd.arrive(self._clock())
        wait = self._crowd.wait_seconds(until, self._clock())
        while wait > 0.0:
            await trio.sleep(wait)
            wait = self._crowd.wait_seconds(until, self._clock())

    def _is_in(self, chain: Chain) -> bool:
        return self.peer.roster.identity_by(chain) is not None

    def _narrow(self, wish: Exchange) -> Exchange | None:
        return narrow_wish(wish, self.peer, self.keys.identity.node_id)

    async def _exchange(self, exchange: Exchange) -> None:
        """One exchange of papers, as the caller."""
        if exchange.ask == self._address:
            return
        request = encode_request(self.peer.request_for(exchange))
        answer = await self.stream_client.ask(exchange.ask, PAPERS, request)
        hello = answer.peer.hello
        self._note_observed(exchange.ask, hello.seen)
        chain = Chain(node_der=hello.certificate, issuer_der=hello.issuer_certificate)
        parts = (encode_paper(chain), *answer.parts)
        for begin in range(0, len(parts), PAPERS_AT_ONCE):
            end = begin + PAPERS_AT_ONCE
            source = exchange.ask if end >= len(parts) else None
            self.submit(self.peer.hear_papers(parts[begin:end], source, self._clock()))
            await trio.lowlevel.checkpoint()
        for offer in self.peer.offers_for(answer.parts):
            await self.stream_client.ask(exchange.ask, PAPERS, encode_request(offer))

    def _note_observed(self, peer: Address, seen: Address) -> None:
        try:
            host, _ = split_address(seen)
        except Malformed:
            return
        self.observed.pop(peer, None)
        self.observed[peer] = host
        if len(self.observed) > REMEMBERED_SEEDS_MAX:
            self.observed.pop(next(iter(self.observed)))

    # -- names ------------------------------------------------------------------------------------

    async def _find_address(self) -> Address:
        before = self._announced.trouble
        address = await self._announced.find(self._seeds)
        if (trouble := self._announced.trouble) is not None and before is None:
            self._hear(Alarm(line=trouble))
        return address

    async def _look_for_ever(self) -> None:
        while True:
            is_alone = not self.view().gossip.members
            await trio.sleep(LOOK_ALONE_SECONDS if is_alone else LOOK_SECONDS)
            seeds = await look_up(self._seed_names)
            if seeds and seeds != self._seeds:
                self._seeds = seeds
                self.submit(self.peer.seek(self._all_seeds(), self._clock()))
            address = await self._find_address()
            if address != self._address:
                self._address = address
                self.submit(self.peer.move((address,), self._clock()))

    def _all_seeds(self) -> tuple[Address, ...]:
        return tuple(dict.fromkeys((*self._seeds, *self._remembered_seeds)))


def _bound(one: socket.socket) -> Address:
    return read_socket_address(one.getsockname())
