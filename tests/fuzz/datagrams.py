"""A running node under a flood of hostile datagrams: it must stay as it was, and as small."""

import random
import time

from cluster.gossip.inputs import Datagram
from tests.fuzz.hostile import Hostile
from tests.fuzz.outcome import GROWTH_BYTES_MAX, WARM_UP, Outcome, Progress, resident_bytes
from tests.fuzz.peers import Node, Peers

NODES = 6
GAP_SECONDS = 0.001
"""Of the node's time, between two datagrams: it sees a flood of 1000 a second."""
CALM_SECONDS_MAX = 600.0
"""Until what accusations have left (shown as `degraded`) is forgotten."""


class Siege:
    """One node, four honest peers, and one that has gone bad."""

    def __init__(self, seed: int) -> None:
        self.peers = Peers(NODES, seed)
        *honest, rogue = self.peers.nodes.values()
        self.target, self.honest, self.rogue = honest[0], honest, rogue
        ids = [node.keys.identity.node_id for node in self.peers.nodes.values()]
        self.hostile = Hostile(
            rogue=rogue.keys,
            rogue_address=rogue.address,
            ids=ids,
            addresses=list(self.peers.nodes),
            chance=random.Random(f"hostile {seed}"),
        )
        self.peers.overheard = self.hostile.overhear
        self._by_id = {node.keys.identity.node_id: node for node in honest}
        self._states_seconds = 0.0
        self.live(10.0)
        # From here on, only the fuzzer speaks for it.
        del self.peers.nodes[rogue.address]
        self.before = self.seen_by(self.target)
        assert {entry[0] for entry in self.before.values()} == {"alive"}, self.before

    def live(self, seconds: float) -> None:
        """Ordinary life, states once a second included."""
        end = self.peers.now + seconds
        while self.peers.now < end:
            if self.peers.now >= self._states_seconds:
                self._states_seconds = self.peers.now + 1.0
                for node in self.peers.nodes.values():
                    self.peers.publish(node, b"state of " + node.name.encode())
            self.peers.run_for(min(end, self._states_seconds) - self.peers.now)

    def attack(self) -> None:
        """One hostile datagram, and the time until the next."""
        data, source = self.hostile.next()
        self.peers.hand_in(self.target, Datagram(source=source, data=data))
        for asker, answer in list(self.hostile.answers()):
            if (node := self._by_id.get(asker)) is not None:
                self.peers.hand_in(node, Datagram(source=self.rogue.address, data=answer))
        self.live(GAP_SECONDS)

    def seen_by(self, node: Node) -> dict[str, tuple[str, ...]]:
        """Honest members as one sees them; what the bad one has become is its own affair."""
        seen = self.peers.statuses(node)
        return {name: entry for name, entry in seen.items() if name != self.rogue.name}

    def violations(self) -> list[str]:
        """What must not have happened."""
        found = [f"{line}" for node in self.honest for line in self._given_up(node)]
        after = self.seen_by(self.target)
        if after != self.before:
            found.append(f"members were {self.before} and are {after}")
        return found

    def calm_down(self) -> float:
        """Leave the node alone until all is as it was; how long that took."""
        begin = self.peers.now
        while self.seen_by(self.target) != self.before:
            if self.peers.now - begin > CALM_SECONDS_MAX:
                break
            self.live(5.0)
        return self.peers.now - begin

    def _given_up(self, node: Node) -> list[str]:
        bad = self.rogue.keys.identity.node_id
        return [
            f"{node.name} gave up {change.node_id.short}: {change.reason}"
            for change in node.gone
            if change.node_id != bad
        ]


def run(count: int, seed: int, progress: Progress) -> Outcome:
    """The whole run."""
    outcome = Outcome(kind="datagrams", seed=seed)
    started = time.perf_counter()
    siege = Siege(seed)
    warm_bytes = resident_bytes()
    checks_before = siege.target.peer.view(siege.peers.now).gossip.checks_total
    begin_seconds = siege.peers.now
    for number in range(count):
        if number == int(count * WARM_UP):
            warm_bytes = resident_bytes()
        siege.attack()
        outcome.count = number + 1
        if number % 10_000 == 0:
            progress(number, count)
    growth_bytes = resident_bytes() - warm_bytes
    flood_seconds = siege.peers.now - begin_seconds
    checks = siege.target.peer.view(siege.peers.now).gossip.checks_total - checks_before
    calm_seconds = siege.calm_down()
    outcome.violations += siege.violations()
    if growth_bytes > GROWTH_BYTES_MAX:
        outcome.violations.append(f"memory grew by {growth_bytes} bytes after the warm-up")
    outcome.wall_seconds = time.perf_counter() - started
    outcome.figures = {
        "datagrams_per_second": round(count / outcome.wall_seconds),
        "signatures_checked_per_flooded_second": round(checks / max(flood_seconds, 1e-9), 1),
        "memory_growth_bytes": growth_bytes,
        "calm_again_after_seconds": round(calm_seconds, 1),
        "made": dict(siege.hostile.made),
        "rejected": dict(siege.target.rejected),
        "effects": dict(siege.target.effects),
    }
    return outcome
