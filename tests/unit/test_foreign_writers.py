from esnode.control.foreign import ForeignWriters, GivenUp, LowerAgain, LowerRespected
from esnode.readings.limits import EnforcedLimit


def found(enforced: int | None, requested: int | None = None) -> list[EnforcedLimit]:
    return [EnforcedLimit(device="a", enforced_watts=enforced, requested_watts=requested)]


def writers(ours: int = 400) -> ForeignWriters:
    made = ForeignWriters(settle_seconds=2.0)
    made.wrote("a", ours, now=0.0)
    return made


def insist(foreign: ForeignWriters, now: float) -> float:
    """Let somebody raise the device and ourselves lower it, until the device is given up."""
    for _ in range(3):
        (finding,) = foreign.judge(found(700, 700), now)
        assert isinstance(finding, LowerAgain)
        foreign.wrote("a", finding.watts, now)
        now += 3.0
    foreign.judge(found(700, 700), now)
    return now


def test_what_is_as_we_set_it_is_no_news() -> None:
    foreign = writers()

    assert foreign.judge(found(400, 400), 10.0) == ()
    assert foreign.ceiling_watts("a") is None


def test_a_device_that_we_never_wrote_is_not_judged() -> None:
    assert ForeignWriters().judge(found(700, 700), 10.0) == ()


def test_nothing_is_judged_before_a_write_has_settled() -> None:
    foreign = writers()

    assert foreign.judge(found(700, 400), 1.9) == ()
    assert foreign.judge(found(700, 400), 2.0) != ()


def test_an_unknown_limit_is_not_judged() -> None:
    assert writers().judge(found(None), 10.0) == ()


def test_a_lower_limit_is_respected_and_told_once() -> None:
    foreign = writers()

    first = foreign.judge(found(300, 300), 10.0)
    second = foreign.judge(found(300, 300), 11.0)

    assert first == (
        LowerRespected(device="a", ours_watts=400, found_watts=300, is_out_of_band=False),
    )
    assert first[0].reason == "held at 300 W by an unknown writer, below our 400 W: respected"
    assert second == ()
    assert foreign.ceiling_watts("a") == 300


def test_another_lower_limit_is_told_again() -> None:
    foreign = writers()
    foreign.judge(found(300, 300), 10.0)

    (finding,) = foreign.judge(found(350, 350), 20.0)

    assert finding.found_watts == 350
    assert foreign.ceiling_watts("a") == 350


def test_an_in_band_ceiling_stays_although_we_write_below_it() -> None:
    foreign = writers()
    foreign.judge(found(300, 300), 10.0)

    foreign.wrote("a", 250, 20.0)
    foreign.judge(found(250, 250), 30.0)
    foreign.wrote("a", 300, 40.0)
    foreign.judge(found(300, 300), 5000.0)

    assert foreign.ceiling_watts("a") == 300


def test_a_ceiling_that_its_owner_lifts_is_gone() -> None:
    foreign = writers()
    foreign.judge(found(300, 400), 10.0)

    foreign.judge(found(400, 400), 20.0)

    assert foreign.ceiling_watts("a") is None


def test_an_out_of_band_ceiling_that_does_not_show_is_tried_again_later() -> None:
    foreign = writers()
    foreign.judge(found(300, 400), 10.0)
    foreign.wrote("a", 300, 20.0)

    foreign.judge(found(300, 300), 609.0)
    before = foreign.ceiling_watts("a")
    foreign.judge(found(300, 300), 610.0)

    assert before == 300
    assert foreign.ceiling_watts("a") is None


def test_an_operator_can_lift_a_ceiling() -> None:
    foreign = writers()
    foreign.judge(found(300, 300), 10.0)

    foreign.release("a")

    assert foreign.ceiling_watts("a") is None


def test_a_higher_limit_is_lowered_three_times_and_then_given_up() -> None:
    foreign = writers()
    findings = []

    for now in (10.0, 20.0, 30.0, 40.0, 50.0):
        findings.extend(foreign.judge(found(700, 700), now))
        foreign.wrote("a", 400, now)

    assert findings == [
        LowerAgain(device="a", watts=400, found_watts=700, attempt_count=1),
        LowerAgain(device="a", watts=400, found_watts=700, attempt_count=2),
        LowerAgain(device="a", watts=400, found_watts=700, attempt_count=3),
        GivenUp(device="a", ours_watts=400, found_watts=700),
    ]
    assert foreign.is_given_up("a")
    assert findings[-1].reason.endswith("the device counts at 700 W")


def test_one_sight_counts_once_until_the_write_that_follows_has_settled() -> None:
    foreign = writers()

    first = foreign.judge(found(700, 700), 10.0)
    again = foreign.judge(found(700, 700), 10.2)

    assert len(first) == 1
    assert again == ()


def test_ten_minutes_of_peace_begin_the_count_anew() -> None:
    foreign = writers()
    foreign.judge(found(700, 700), 10.0)
    foreign.wrote("a", 400, 10.0)

    foreign.judge(found(400, 400), 600.0)
    foreign.judge(found(400, 400), 610.0)
    (finding,) = foreign.judge(found(700, 700), 620.0)

    assert isinstance(finding, LowerAgain)
    assert finding.attempt_count == 1


def test_less_than_ten_minutes_of_peace_do_not() -> None:
    foreign = writers()
    foreign.judge(found(700, 700), 10.0)
    foreign.wrote("a", 400, 10.0)

    foreign.judge(found(400, 400), 609.0)
    (finding,) = foreign.judge(found(700, 700), 609.5)

    assert isinstance(finding, LowerAgain)
    assert finding.attempt_count == 2


def test_a_given_up_device_comes_back_after_peace() -> None:
    foreign = writers()
    now = insist(foreign, 10.0)

    foreign.judge(found(400, 400), now + 599.0)
    is_still_given_up = foreign.is_given_up("a")
    foreign.judge(found(400, 400), now + 600.0)

    assert is_still_given_up
    assert not foreign.is_given_up("a")


def test_a_given_up_device_stays_so_while_it_is_found_higher() -> None:
    foreign = writers()
    now = insist(foreign, 10.0)

    for _ in range(20):
        now += 100.0
        assert foreign.judge(found(700, 700), now) == ()

    assert foreign.is_given_up("a")


def test_an_operator_can_take_a_device_back() -> None:
    foreign = writers()
    insist(foreign, 10.0)

    foreign.release("a")

    assert not foreign.is_given_up("a")
