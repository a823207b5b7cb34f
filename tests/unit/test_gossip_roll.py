"""Drawing from a roll, taking turns on it, and how often a life may be outlived."""

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from cluster.gossip.messages import Version
from cluster.gossip.rebirth import Rebirth
from cluster.gossip.roll import Roll, Turns
from cluster.ids import NodeId


def ids(*numbers: int) -> list[NodeId]:
    return [NodeId(number.to_bytes(16, "big")) for number in numbers]


def shared(count: int) -> Roll:
    some = ids(*range(count))
    return Roll(some, {one: place for place, one in enumerate(some)})


def own(count: int) -> Roll:
    roll = Roll()
    for one in ids(*range(count)):
        roll.add(one)
    return roll


ROLLS = [pytest.param(shared, id="shared"), pytest.param(own, id="own")]


@pytest.mark.parametrize("make", ROLLS)
def test_who_is_struck_off_is_not_drawn_and_may_come_back(make: Callable[[int], Roll]) -> None:
    roll = make(5)
    gone, back, new = ids(1, 2, 9)

    roll.strike(gone)
    roll.strike(back)
    roll.add(back)
    roll.add(new)
    roll.add(new)

    assert len(roll) == 5
    assert gone not in roll
    assert sorted(roll) == ids(0, 2, 3, 4, 9)
    drawn = [one for _ in range(50) for one in roll.draw(random.Random(3), 3)]
    assert gone not in drawn


@pytest.mark.parametrize("make", ROLLS)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 200])
def test_the_drawn_are_different_as_many_as_there_are_and_never_who_is_left_out(
    make: Callable[[int], Roll], count: int
) -> None:
    roll = make(100)
    left_out = ids(7)[0]
    rng = random.Random(5)

    draws = [roll.draw(rng, count, without=left_out) for _ in range(50)]

    assert {len(draw) for draw in draws} == {min(count, 99)}
    assert all(len(set(draw)) == len(draw) for draw in draws)
    assert not any(left_out in draw for draw in draws)


@pytest.mark.parametrize("make", ROLLS)
def test_everybody_is_drawn_equally_often(make: Callable[[int], Roll]) -> None:
    roll = make(40)
    rng = random.Random(6)

    counts = dict.fromkeys(roll, 0)
    for _ in range(4000):
        for one in roll.draw(rng, 3):
            counts[one] += 1

    assert 200 < min(counts.values()) <= max(counts.values()) < 400


@pytest.mark.parametrize("make", ROLLS)
def test_each_has_one_turn_before_anybody_has_two(make: Callable[[int], Roll]) -> None:
    roll = make(30)
    turns = Turns(roll, random.Random(7))

    rounds = [[turns.next() for _ in range(30)] for _ in range(3)]

    assert all(sorted(filter(None, one)) == sorted(roll) for one in rounds)
    assert rounds[0] != rounds[1] != rounds[2]


@pytest.mark.parametrize("make", ROLLS)
def test_who_comes_during_a_round_has_a_turn_in_it_and_who_goes_has_none(
    make: Callable[[int], Roll],
) -> None:
    roll = make(10)
    turns = Turns(roll, random.Random(8))
    first = [turns.next() for _ in range(4)]
    newcomer = ids(99)[0]
    gone = next(one for one in roll if one not in first)

    roll.add(newcomer)
    roll.strike(gone)
    rest = [turns.next() for _ in range(6)]

    assert newcomer in rest
    assert gone not in rest
    assert len({*first, *rest}) == 10


def test_a_roll_that_most_have_left_is_written_anew_and_turns_go_on() -> None:
    roll = own(200)
    turns = Turns(roll, random.Random(9))
    for _ in range(50):
        turns.next()

    for one in ids(*range(190)):
        roll.strike(one)
    taken = {turns.next() for _ in range(40)}

    assert taken == set(ids(*range(190, 200)))
    assert roll.places_count < 60


def test_nobody_has_a_turn_on_an_empty_roll() -> None:
    roll = own(1)
    turns = Turns(roll, random.Random(1))
    roll.strike(ids(0)[0])

    assert turns.next() is None
    assert roll.draw(random.Random(1), 3) == []


def life(epoch: int) -> Version:
    return Version(epoch=epoch, sequence=1)


def test_a_forgotten_life_is_outlived_at_once_and_the_newest_of_several() -> None:
    rebirth = Rebirth()

    rebirth.hear(life(4))
    rebirth.hear(life(3))

    assert rebirth.take(10.0) == life(4)
    assert rebirth.take(10.0) is None
    assert not rebirth.is_contested


def test_whoever_is_outdone_again_and_again_waits_longer_each_time() -> None:
    rebirth = Rebirth()
    moments = []

    for step in range(1, 12_000):
        rebirth.hear(life(step))
        if rebirth.take(step / 10) is not None:
            moments.append(step / 10)

    waits = [round(after - before, 1) for before, after in pairwise(moments)]
    assert waits[:8] == [0.1, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert set(waits[8:]) == {60.0}
    assert rebirth.is_contested


def test_after_a_long_calm_it_counts_as_the_first_time_again() -> None:
    rebirth = Rebirth()
    for moment in (0.0, 0.1, 5.0):
        rebirth.hear(life(1))
        rebirth.take(moment)

    rebirth.hear(life(9))
    assert rebirth.due_seconds <= 400.0
    assert rebirth.take(400.0) == life(9)
    assert not rebirth.is_contested
