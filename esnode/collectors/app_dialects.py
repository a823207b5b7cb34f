"""How inference servers name their token counters and queues: one row a server.

Its own file because it is pure knowledge of other people's metric names, which changes with their
releases and not with ours. It must not know HTTP; `app` does the asking.

Rules: a counter is summed over all labels but the model's; a sum with one unusable summand is
absent, as a part of a sum looks like a counter that was reset; nothing but tokens is sold as
tokens (Triton's `nv_inference_request_success` counts requests).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from esnode.readings.app import AppReading, TokenCount
from esnode.readings.host import Absence

PROMPT = "prompt"
GENERATION = "generation"
UNKNOWN = "unknown"

GENERIC_ENDING = "tokens_total"
"""What a counter's name ends in for the dialect without a name."""

SERIES_MAX = 200
"""Token counters of one endpoint: a server that makes up model names must not fill Prometheus."""

_MODEL_LABELS = ("model_name", "model")

_PROMPT_WORDS = frozenset({"prompt", "input"})
_GENERATION_WORDS = frozenset({"generation", "generated", "output", "completion"})
_PARTIAL_WORDS = frozenset({"cache", "cached", "draft", "accepted", "rejected", "reasoning"})
"""Words of counters whose tokens other counters have too, so that a sum would count them twice."""


COUNT_MAX = 2.0**53
"""Beyond it a float cannot count by one, and sums of such values end as infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line of a Prometheus exposition."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One gauge of requests, perhaps of one label value only."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One server's names. The first gauge that the endpoint has is the one taken."""

    engine: str
    tokens: Mapping[str, str]
    """Counter to kind."""
    running: tuple[Gauge, ...] = ()
    waiting: tuple[Gauge, ...] = ()

    def names(self) -> frozenset[str]:
        """Every name that this dialect reads."""
        gauges = (*self.running, *self.waiting)
        return frozenset({*self.tokens, *(gauge.name for gauge in gauges)})


DIALECTS = (
    # Source: vLLM, "Production Metrics". Triton's vLLM backend gives the same names with `model`.
    Dialect(
        engine="vllm",
        tokens={
            "vllm:prompt_tokens_total": PROMPT,
            "vllm:generation_tokens_total": GENERATION,
        },
        running=(Gauge(name="vllm:num_requests_running"),),
        waiting=(Gauge(name="vllm:num_requests_waiting"),),
    ),
    # Source: SGLang, "Production Metrics".
    Dialect(
        engine="sglang",
        tokens={
            "sglang:prompt_tokens_total": PROMPT,
            "sglang:generation_tokens_total": GENERATION,
        },
        running=(Gauge(name="sglang:num_running_reqs"),),
        waiting=(Gauge(name="sglang:num_queue_reqs"),),
    ),
    # Source: text-generation-inference, "Metrics": histograms by request, whose sums are tokens.
    Dialect(
        engine="tgi",
        tokens={
            "tgi_request_input_length_sum": PROMPT,
            "tgi_request_generated_tokens_sum": GENERATION,
        },
        running=(Gauge(name="tgi_batch_current_size"),),
        waiting=(Gauge(name="tgi_queue_size"),),
    ),
    # Source: Triton, "Metrics", and the metrics of its TensorRT-LLM backend. Tokens come from that
    # backend alone; the pending requests of an ensemble are counted at each of its steps.
    Dialect(
        engine="triton",
        tokens={
            "nv_llm_input_token_len_sum": PROMPT,
            "nv_llm_output_token_len_sum": GENERATION,
        },
        running=(Gauge(name="nv_trt_llm_request_metrics", labels={"request_type": "scheduled"}),),
        waiting=(
            Gauge(name="nv_trt_llm_request_metrics", labels={"request_type": "waiting"}),
            Gauge(name="nv_inference_pending_request_count"),
        ),
    ),
    # Source: llama.cpp, tools/server/README.md. One model, so no label.
    Dialect(
        engine="llamacpp",
        tokens={
            "llamacpp:prompt_tokens_total": PROMPT,
            "llamacpp:tokens_predicted_total": GENERATION,
        },
        running=(Gauge(name="llamacpp:requests_processing"),),
        waiting=(Gauge(name="llamacpp:requests_deferred"),),
    ),
)

KNOWN_NAMES = frozenset(name for dialect in DIALECTS for name in dialect.names())


def is_of_interest(name: str) -> bool:
    """Whether any dialect may read this metric: the others need not be parsed."""
    return name in KNOWN_NAMES or name.endswith(GENERIC_ENDING)


def read_samples(endpoint: str, samples: Iterable[Sample]) -> AppReading:
    """Word an endpoint's metrics as ours; the first dialect that knows any of them is spoken."""
    kept = list(samples)
    present = {sample.name for sample in kept}
    for dialect in DIALECTS:
        if not present.isdisjoint(dialect.names()):
            return _speak(endpoint, dialect, kept)
    return _speak(endpoint, _generic_dialect(kept), kept)


def _speak(endpoint: str, dialect: Dialect, samples: list[Sample]) -> AppReading:
    absent: list[Absence] = []
    tokens = _count_tokens(dialect, samples, absent)
    if not tokens and not absent:
        absent.append(
            Absence(what="tokens", reason=f"no token counter of {dialect.engine} at this endpoint")
        )
    return AppReading(
        endpoint=endpoint,
        engine=dialect.engine,
        tokens=tokens,
        requests_running=_sum_gauge("requests_running", dialect.running, samples, absent),
        requests_waiting=_sum_gauge("requests_waiting", dialect.waiting, samples, absent),
        absent=tuple(absent),
    )


def _generic_dialect(samples: Iterable[Sample]) -> Dialect:
    """Guess from their names what counters with a model's label count."""
    kinds = {
        sample.name: _guess_kind(sample.name)
        for sample in samples
        if any(label in sample.labels for label in _MODEL_LABELS)
        and _PARTIAL_WORDS.isdisjoint(_words(sample.name))
    }
    if UNKNOWN in kinds.values() and len(set(kinds.values())) > 1:
        # The nameless one is most likely the sum of the others.
        kinds = {name: kind for name, kind in kinds.items() if kind != UNKNOWN}
    return Dialect(engine="generic", tokens=kinds)


def _guess_kind(name: str) -> str:
    words = _words(name)
    if words & _PROMPT_WORDS:
        return PROMPT
    return GENERATION if words & _GENERATION_WORDS else UNKNOWN


def _words(name: str) -> frozenset[str]:
    return frozenset(name.replace(":", "_").lower().split("_"))


def _count_tokens(
    dialect: Dialect, samples: Iterable[Sample], absent: list[Absence]
) -> tuple[TokenCount, ...]:
    """Sum the counters by model and kind, in that order."""
    sums: dict[tuple[str, str], float] = {}
    unusable: dict[tuple[str, str], str] = {}
    left_out: dict[tuple[str, str], None] = {}
    for sample in samples:
        kind = dialect.tokens.get(sample.name)
        if kind is None:
            continue
        model = next(
            (sample.labels[label] for label in _MODEL_LABELS if label in sample.labels), ""
        )
        key = (model, kind)
        if key not in sums and len(sums) >= SERIES_MAX:
            left_out[key] = None
            continue
        if _is_count(sample.value):
            sums[key] = sums.get(key, 0.0) + sample.value
        else:
            unusable[key] = f"{sample.name} is {sample.value}"
    if left_out:
        reason = f"the first {SERIES_MAX} models and kinds are kept, {len(left_out)} more are not"
        absent.append(Absence(what="tokens", reason=reason))
    for (model, kind), reason in sorted(unusable.items()):
        absent.append(Absence(what=f"tokens:{model}:{kind}", reason=reason))
    return tuple(
        TokenCount(model=model, kind=kind, tokens_total=total)
        for (model, kind), total in sorted(sums.items())
        if (model, kind) not in unusable
    )


def _sum_gauge(
    what: str, gauges: Iterable[Gauge], samples: Iterable[Sample], absent: list[Absence]
) -> float | None:
    """Sum the first of the gauges that the endpoint has."""
    kept = list(samples)
    for gauge in gauges:
        values = [
            sample.value
            for sample in kept
            if sample.name == gauge.name and gauge.labels.items() <= sample.labels.items()
        ]
        if not values:
            continue
        if all(_is_count(value) for value in values):
            return sum(values)
        bad = next(value for value in values if not _is_count(value))
        absent.append(Absence(what=what, reason=f"{gauge.name} is {bad}"))
        return None
    return None


def _is_count(value: float) -> bool:
    return 0 <= value <= COUNT_MAX
