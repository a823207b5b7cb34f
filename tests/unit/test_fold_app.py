"""Tokens a second and per joule over one window."""

import pytest

from esnode.fold.app import WINDOW_SECONDS, AppFold
from esnode.fold.power import EnergyPrice
from esnode.readings.app import AppReading, TokenCount
from esnode.readings.sample import Reading
from esnode.snapshot import AppState
from tests.samples import sample

NO_PRICE = EnergyPrice()


def server(at: float, url: str = "a", **tokens: float) -> Reading:
    return Reading(apps={url: sample(scrape(url, **tokens), at)})


def scrape(url: str, **tokens: float) -> AppReading:
    return AppReading(
        endpoint=url,
        engine="vllm",
        tokens=tuple(
            TokenCount(model="m", kind=kind, tokens_total=count) for kind, count in tokens.items()
        ),
    )


def run(
    fold: AppFold,
    *rounds: tuple[float, Reading, float | None],
    price: EnergyPrice = NO_PRICE,
) -> AppState:
    for now, reading, joules in rounds:
        state = fold.fold(reading, node_energy_joules_total=joules, price=price, now=now)
    return state


def test_the_rate_is_all_tokens_over_the_window() -> None:
    state = run(
        AppFold(),
        (0.0, server(0.0, prompt=1000, generation=0), 0.0),
        (10.0, server(10.0, prompt=1500, generation=100), 3000.0),
    )

    assert state.tokens_per_second == 60.0
    assert state.tokens_per_joule == 0.2
    assert state.window_seconds == 10.0


def test_one_scrape_says_nothing_of_a_rate() -> None:
    state = run(AppFold(), (0.0, server(0.0, generation=5000), 0.0))

    assert state.tokens_per_second is None
    assert [e.endpoint for e in state.endpoints] == ["a"]


def test_a_server_that_restarted_counts_from_zero() -> None:
    state = run(
        AppFold(),
        (0.0, server(0.0, generation=5000), 0.0),
        (5.0, server(5.0, generation=5100), 100.0),
        (10.0, server(10.0, generation=50), 200.0),
    )

    assert state.tokens_per_second == 15.0


def test_a_model_that_appears_brings_no_burst() -> None:
    state = run(
        AppFold(),
        (0.0, server(0.0, generation=0), None),
        (10.0, server(10.0, generation=100, prompt=1_000_000), None),
    )

    assert state.tokens_per_second == 10.0


def test_a_server_that_was_away_brings_no_burst_of_its_absence() -> None:
    fold = AppFold()
    last_of_b = sample(scrape("b", generation=0), 0.0)
    for now in range(0, 41, 5):
        answering = sample(scrape("a", generation=now * 10), float(now))
        run(fold, (float(now), Reading(apps={"a": answering, "b": last_of_b}), None))
    back = {
        "a": sample(scrape("a", generation=450), 45.0),
        "b": sample(scrape("b", generation=1_000_000), 45.0),
    }

    state = run(fold, (45.0, Reading(apps=back), None))

    assert state.tokens_per_second == 10.0


def test_without_energy_there_is_no_token_per_joule_and_no_price_of_a_token() -> None:
    state = run(
        AppFold(),
        (0.0, server(0.0, generation=0), None),
        (10.0, server(10.0, generation=100), None),
        price=EnergyPrice(price_per_kilowatt_hour=0.2, carbon_grams_per_kilowatt_hour=400),
    )

    assert state.tokens_per_second == 10.0
    assert state.tokens_per_joule is None
    assert state.cost_per_million_tokens is None
    assert state.carbon_grams_per_token is None


def test_a_tokens_price_is_its_share_of_the_nodes_energy() -> None:
    price = EnergyPrice(price_per_kilowatt_hour=0.36, carbon_grams_per_kilowatt_hour=360.0)

    state = run(
        AppFold(),
        (0.0, server(0.0, generation=0), 0.0),
        (10.0, server(10.0, generation=1000), 10_000.0),
        price=price,
    )

    assert state.cost_per_million_tokens == pytest.approx(1.0)
    assert state.carbon_grams_per_token == pytest.approx(0.001)


def test_no_tokens_for_much_energy_is_zero_and_has_no_price() -> None:
    state = run(
        AppFold(),
        (0.0, server(0.0, generation=7), 0.0),
        (10.0, server(10.0, generation=7), 1000.0),
        price=EnergyPrice(price_per_kilowatt_hour=0.2),
    )

    assert state.tokens_per_joule == 0.0
    assert state.cost_per_million_tokens is None


def test_the_window_slides() -> None:
    fold = AppFold()
    for step in range(41):
        now = step * 5.0
        state = run(fold, (now, server(now, generation=now * 10), now * 100))

    assert state.window_seconds is not None
    assert WINDOW_SECONDS - 5.0 <= state.window_seconds <= WINDOW_SECONDS
    assert state.tokens_per_second == pytest.approx(10.0)
    assert state.tokens_per_joule == pytest.approx(0.1)


def test_a_server_that_stopped_answering_has_no_rate() -> None:
    fold = AppFold()
    run(
        fold,
        (0.0, server(0.0, generation=0), 0.0),
        (10.0, server(10.0, generation=100), 1000.0),
    )

    state = run(fold, (60.0, server(10.0, generation=100), 2000.0))

    assert state == AppState()


def test_ticks_between_two_scrapes_change_nothing() -> None:
    fold = AppFold()
    first, second = server(0.0, generation=0), server(5.0, generation=50)
    run(fold, (0.0, first, 0.0), (5.0, second, 500.0))

    states = [run(fold, (now, second, 600.0)) for now in (6.0, 7.0)]

    assert [state.tokens_per_second for state in states] == [10.0, 10.0]
