import pytest

from esnode.control.arbiter import Claim, Source, allow, arbitrate, narrow
from esnode.readings.limits import Limit, LimitRange


def claim(source: Source, watts: int | None, reason: str = "because") -> Claim:
    return Claim(source=source, watts=watts, reason=reason)


@pytest.mark.parametrize(
    ("claims", "watts", "source"),
    [
        pytest.param([(Source.RACK, 5000)], 5000, Source.RACK, id="one"),
        pytest.param(
            [(Source.OPERATOR, 4000), (Source.RACK, 5000)], 4000, Source.OPERATOR, id="the-lowest"
        ),
        pytest.param(
            [(Source.PROFILE, 4000), (Source.THERMAL, 4000)],
            4000,
            Source.THERMAL,
            id="of-two-alike-the-first-by-rank",
        ),
        pytest.param([(Source.RACK, -7)], 0, Source.RACK, id="less-than-nothing-is-nothing"),
        pytest.param(
            [(Source.RACK, 6000), (Source.RACK, 5500)], 5500, Source.RACK, id="two-currencies"
        ),
    ],
)
def test_the_lowest_claim_binds(
    claims: list[tuple[Source, int]], watts: int, source: Source
) -> None:
    decision = arbitrate([claim(*one) for one in claims])

    assert decision.watts == watts
    assert decision.binding is not None
    assert decision.binding.source is source
    assert decision.may_raise


def test_the_order_of_claims_does_not_matter() -> None:
    claims = [claim(Source.RACK, 5000), claim(Source.PROFILE, 5000), claim(Source.THERMAL, None)]

    assert arbitrate(claims) == arbitrate(reversed(claims))


def test_without_claims_nothing_caps() -> None:
    decision = arbitrate([])

    assert (decision.watts, decision.binding, decision.may_raise) == (None, None, True)
    assert decision.reason == "nothing caps this node"


def test_a_claimant_that_cannot_say_keeps_everything_from_rising() -> None:
    decision = arbitrate(
        [claim(Source.OPERATOR, 4000, "maintenance"), claim(Source.RACK, None, "ledger not read")]
    )

    assert decision.watts == 4000
    assert not decision.may_raise
    assert decision.reason == (
        "operator: maintenance; nothing is raised while unknown: rack (ledger not read)"
    )


def test_only_unknown_claims_leave_no_cap_and_no_raise() -> None:
    decision = arbitrate([claim(Source.RACK, None)])

    assert decision.watts is None
    assert not decision.may_raise


def test_under_an_unknown_claim_only_lowerings_pass() -> None:
    limits = (
        Limit(device="up", watts=500),
        Limit(device="down", watts=300),
        Limit(device="same", watts=400),
        Limit(device="unknown", watts=400),
    )
    in_force = {"up": 400, "down": 400, "same": 400, "unknown": None}

    held = allow(arbitrate([claim(Source.RACK, None)]), limits, in_force)
    free = allow(arbitrate([claim(Source.RACK, 5000)]), limits, in_force)

    assert [limit.device for limit in held] == ["down", "same", "unknown"]
    assert free == limits


@pytest.mark.parametrize(
    ("ceiling", "expected"),
    [
        pytest.param(None, (200, 700), id="none"),
        pytest.param(800, (200, 700), id="above"),
        pytest.param(500, (200, 500), id="within"),
        pytest.param(150, (150, 150), id="below"),
    ],
)
def test_somebody_elses_ceiling_narrows_a_range(
    ceiling: int | None, expected: tuple[int, int]
) -> None:
    limits = LimitRange(device="a", kind="gpu", minimum_watts=200, maximum_watts=700)

    narrowed = narrow(limits, ceiling)

    assert (narrowed.minimum_watts, narrowed.maximum_watts) == expected
