"""Where a story is played: a fleet under checkers, what was measured, and what went wrong.

Its own file because stories should read as stories. A story does something to the fleet, lets time
pass, and says what it *demands* within which time (liveness) or *requires* at that moment. Figures
are measurements without a verdict. It must not know any story.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence

from cluster.gossip.effects import Status
from cluster.gossip.settings import GossipSettings
from simulations.checkers import Checkers, Violation
from simulations.fleet import Fleet
from simulations.node import Node
from simulations.sightings import AllSee, changes_to

Figure = int | float | None

_SMALL_RACK_COUNT = 10
_LARGE_RACK_COUNT = 40
_LARGE_COUNT = 100
_PERSISTENT_COUNT = 2_000
_STATES_COUNT = 400
PAPERS_COUNT = 200
"""What a larger fleet would hold of papers is that many squared: it is of gossip alone."""
_DRIFT_PPM = 100.0
"""What the cheapest crystals differ from each other."""
_PROGRESS_SECONDS = 0.2
_SETTLE_SECONDS = 4.0


def rack_size(count: int) -> int:
    """Of a fleet of so many."""
    return _SMALL_RACK_COUNT if count <= _LARGE_COUNT else _LARGE_RACK_COUNT


def _settings(count: int) -> GossipSettings:
    # What very large fleets would keep on disk is a hundred million numbers, and nobody restarts.
    persist = math.inf if count > _PERSISTENT_COUNT else GossipSettings().persist_interval_seconds
    return GossipSettings(expected_members_count=max(50, count), persist_interval_seconds=persist)


class Stage:
    """One run of one story."""

    def __init__(
        self, count: int, seed: int, *, progress: Callable[[float], None] | None = None
    ) -> None:
        self.count = count
        self.seed = seed
        self.chance = random.Random(f"story {seed}")
        self.figures: dict[str, Figure] = {}
        self._progress = progress
        self._fleet: Fleet | None = None
        self._checkers: Checkers | None = None

    @property
    def fleet(self) -> Fleet:
        """The fleet on this stage."""
        assert self._fleet is not None
        return self._fleet

    @property
    def checkers(self) -> Checkers:
        """Who looks after it."""
        assert self._checkers is not None
        return self._checkers

    @property
    def violations(self) -> Sequence[Violation]:
        """What has gone wrong."""
        return self.checkers.violations

    # Beginnings.

    def build(self, *, has_states: bool = True) -> Fleet:
        """A fleet that has not begun."""
        self._fleet = Fleet(
            self.count,
            seed=self.seed,
            rack_size=rack_size(self.count),
            has_states=has_states,
            drift_ppm=_DRIFT_PPM,
            settings=_settings(self.count),
            has_papers=self.count <= PAPERS_COUNT,
        )
        self._checkers = Checkers(self._fleet)
        if self._progress is not None:
            self._fleet.world.after(_PROGRESS_SECONDS, self._show_progress)
        return self._fleet

    def settle(self, *, has_states: bool = True) -> Fleet:
        """An old cluster, at rest; very large ones without states, which would be all there is."""
        fleet = self.build(has_states=has_states and self.count <= _STATES_COUNT)
        fleet.begin_old()
        fleet.run_for(_SETTLE_SECONDS)
        return fleet

    # Choosing.

    def pick(self, count: int, among: Iterable[Node] | None = None) -> list[Node]:
        """Some nodes, in no order; never the first, which the others know as their seed."""
        offered = self.fleet.nodes[1:] if among is None else list(among)
        return self.chance.sample(offered, min(count, len(offered)))

    def share(self, ratio: float) -> list[Node]:
        """Such a share of all nodes, at least one."""
        return self.pick(max(1, round(ratio * self.count)))

    def others(self, *nodes: Node) -> list[Node]:
        """Everybody else."""
        left_out = {node.number: None for node in nodes}
        return [node for node in self.fleet.nodes if node.number not in left_out]

    # Verdicts.

    def demand(
        self, what: str, condition: Callable[[], bool], *, within_seconds: float
    ) -> float | None:
        """Let time pass until it is so; how long that took. A violation if it takes too long."""
        began = self.fleet.now
        if condition() or self.fleet.run_for(within_seconds, condition):
            return round(self.fleet.now - began, 6)
        missing = condition.missing if isinstance(condition, AllSee) else "not so"
        self.checkers.accuse("all", f"not within {within_seconds} s: {what} ({missing})")
        return None

    def require(self, holds: bool, what: str) -> None:
        """Take it down as a violation if it is not so."""
        if not holds:
            self.checkers.accuse("all", what)

    # Measuring.

    def measure(self, **figures: Figure) -> None:
        """Take figures down."""
        for name, value in figures.items():
            self.figures[name] = round(value, 6) if isinstance(value, float) else value

    def first_and_last(
        self, status: Status, subjects: Iterable[Node], began_seconds: float
    ) -> tuple[float | None, float | None, int]:
        """When one of these was first and last taken for this since then, and how many times."""
        wanted = {node.node_id: None for node in subjects}
        moments = [
            when - began_seconds
            for when, _, subject in changes_to(self.fleet, status)
            if when >= began_seconds and subject in wanted
        ]
        return (min(moments), max(moments), len(moments)) if moments else (None, None, 0)

    def count_changes(self, status: Status, began_seconds: float) -> int:
        """How many times anybody was taken for this since then."""
        return sum(when >= began_seconds for when, _, _ in changes_to(self.fleet, status))

    def traffic(self, seconds: float, *, prefix: str = "") -> None:
        """Let time pass, and take down what each node sends meanwhile."""
        before = self._sent()
        self.fleet.run_for(seconds)
        datagrams, sent = (now - then for now, then in zip(self._sent(), before, strict=True))
        per = len(self.fleet.running) * seconds
        self.measure(
            **{
                f"{prefix}datagrams_per_node_per_second": datagrams / per,
                f"{prefix}bytes_per_node_per_second": sent / per,
            }
        )

    def _sent(self) -> tuple[int, int]:
        nodes = self.fleet.nodes
        return sum(node.sent_total for node in nodes), sum(node.sent_bytes for node in nodes)

    def _show_progress(self) -> None:
        if self._progress is not None:
            self._progress(self.fleet.now)
            self.fleet.world.after(_PROGRESS_SECONDS, self._show_progress)
