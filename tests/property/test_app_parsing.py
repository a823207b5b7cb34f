"""Whatever a server sends, a scrape ends in a reading or in one line."""

from hypothesis import given
from hypothesis import strategies as st

from esnode.collectors.app import parse_exposition
from esnode.collectors.app_dialects import KNOWN_NAMES, read_samples
from esnode.collectors.base import CollectFailed
from esnode.readings.app import AppReading

NAMES = st.sampled_from([*sorted(KNOWN_NAMES), "acme_prompt_tokens_total", "up"])
FRAGMENTS = st.one_of(
    NAMES,
    st.sampled_from([*'{}",=\\ \t\n#', "model", "NaN", "+Inf", "1e400", "-1", "7", "le="]),
    st.text(max_size=5),
)


def scrape(body: bytes) -> AppReading | str:
    """The reading, or the one line of the failure."""
    try:
        return read_samples("here", parse_exposition("here", body))
    except CollectFailed as error:
        return str(error)


@given(st.lists(FRAGMENTS, max_size=30).map("".join))
def test_any_text_gives_a_reading_or_one_line(text: str) -> None:
    outcome = scrape(text.encode("utf-8", "replace"))

    if isinstance(outcome, str):
        assert outcome.startswith("here: line ")
        assert "\n" not in outcome
    else:
        assert all(count.tokens_total >= 0 for count in outcome.tokens)
        assert outcome.requests_running is None or outcome.requests_running >= 0


@given(st.binary(max_size=200))
def test_any_bytes_give_a_reading_or_one_line(body: bytes) -> None:
    outcome = scrape(body)

    assert isinstance(outcome, AppReading) or outcome.startswith("here: line ")


@given(NAMES, st.text(max_size=20), st.floats(min_value=0, max_value=1e15))
def test_a_well_formed_line_is_always_understood(name: str, model: str, value: float) -> None:
    escaped = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    body = f'{name}{{model_name="{escaped}"}} {value!r}\n'.encode("utf-8", "replace")

    samples = list(parse_exposition("here", body))

    assert [sample.value for sample in samples] == ([] if name == "up" else [value])
