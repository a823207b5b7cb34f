"""A roll of nodes from which some can be drawn by chance, and a round in which each has its turn.

Its own file because with thousands of members nothing may cost a walk through all of them: to draw
three, to begin a round and to strike one off take the same few steps for ten members as for ten
thousand. Places on the roll do not move while a round goes on, so a round that has begun stays
one: whoever comes during it still has a turn in it, and nobody has two. Part of a roll may be
shared with others and frozen (`ground`). It must not know what a node is.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

from cluster.ids import NodeId

_STRUCK_MIN = 32
"""Fewer empty places are not worth a new roll."""


class Roll:
    """Ids in places. A place of one that was struck off stays empty until there are too many."""

    def __init__(
        self, shared: Sequence[NodeId] = (), places: Mapping[NodeId, int] | None = None
    ) -> None:
        self._shared = shared
        self._shared_places: Mapping[NodeId, int] = places or {}
        self._struck: dict[int, None] = {}
        """Of the shared places."""
        self._added: list[NodeId | None] = []
        self._added_places: dict[NodeId, int] = {}
        self.generation = 0
        """Raised when places have moved."""

    def __len__(self) -> int:
        return len(self._shared) - len(self._struck) + len(self._added_places)

    def __contains__(self, node_id: NodeId) -> bool:
        if node_id in self._added_places:
            return True
        place = self._shared_places.get(node_id)
        return place is not None and place not in self._struck

    def __iter__(self) -> Iterator[NodeId]:
        for place in range(self.places_count):
            node_id = self.at(place)
            if node_id is not None:
                yield node_id

    @property
    def places_count(self) -> int:
        """With the empty ones."""
        return len(self._shared) + len(self._added)

    def at(self, place: int) -> NodeId | None:
        """Who has this place."""
        shared = len(self._shared)
        if place >= shared:
            return self._added[place - shared]
        return None if place in self._struck else self._shared[place]

    def add(self, node_id: NodeId) -> None:
        """Put one on the roll."""
        if node_id in self:
            return
        place = self._shared_places.get(node_id)
        if place is not None:
            del self._struck[place]
            return
        self._added_places[node_id] = len(self._added)
        self._added.append(node_id)

    def strike(self, node_id: NodeId) -> None:
        """Take one off."""
        place = self._added_places.pop(node_id, None)
        if place is not None:
            self._added[place] = None
            self._close_up()
            return
        place = self._shared_places.get(node_id)
        if place is not None:
            self._struck[place] = None

    def draw(self, rng: random.Random, count: int, without: NodeId | None = None) -> list[NodeId]:
        """So many different ones by chance, or as many as there are."""
        there = len(self) - (without is not None and without in self)
        if there <= 3 * count or self.places_count > 8 * len(self):
            everybody = [one for one in self if one != without]
            return rng.sample(everybody, min(count, len(everybody)))
        drawn: dict[NodeId, None] = {}
        while len(drawn) < count:
            node_id = self.at(rng.randrange(self.places_count))
            if node_id is not None and node_id != without:
                drawn[node_id] = None
        return list(drawn)

    def _close_up(self) -> None:
        empty = len(self._added) - len(self._added_places)
        if empty >= _STRUCK_MIN and 2 * empty > len(self._added):
            self._added = [one for one in self._added if one is not None]
            self._added_places = {
                one: place for place, one in enumerate(self._added) if one is not None
            }
            self.generation += 1


class Turns:
    """Everybody on a roll, one after the other, in an order by chance; then again in another.

    The order is drawn as it is used. Source: Fisher and Yates's shuffle, with the places that have
    not been touched left out of the table.
    """

    def __init__(self, roll: Roll, rng: random.Random) -> None:
        self._roll = roll
        self._rng = rng
        self._generation = roll.generation
        self._known_count = 0
        self._left_count = 0
        self._moved: dict[int, int] = {}

    def next(self) -> NodeId | None:
        """Whose turn it is; None where nobody is on the roll."""
        if not len(self._roll):
            return None
        while True:
            self._take_in_newcomers()
            if not self._left_count:
                self._known_count = 0
                continue
            node_id = self._roll.at(self._pull())
            if node_id is not None:
                return node_id

    def _take_in_newcomers(self) -> None:
        if self._generation != self._roll.generation:
            self._generation = self._roll.generation
            self._known_count = self._left_count = 0
            self._moved.clear()
        count = self._roll.places_count
        if not self._left_count:
            self._known_count, self._left_count = count, count
        for place in range(self._known_count, count):
            self._moved[self._left_count] = place
            self._left_count += 1
        self._known_count = count

    def _pull(self) -> int:
        chosen = self._rng.randrange(self._left_count)
        self._left_count -= 1
        last = self._moved.pop(self._left_count, self._left_count)
        if chosen == self._left_count:
            return last
        place = self._moved.get(chosen, chosen)
        self._moved[chosen] = last
        return place
