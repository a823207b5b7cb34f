"""What each inference server calls its tokens and its queues."""

import math

import pytest

from esnode.collectors.app import parse_exposition
from esnode.collectors.app_dialects import SERIES_MAX, Sample, is_of_interest, read_samples
from esnode.readings.app import AppReading

SGLANG = """\
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="llama",tp_rank="0"} 8.128902e+06
sglang:generation_tokens_total{model_name="llama",tp_rank="0"} 7.557572e+06
sglang:cached_tokens_total{model_name="llama"} 12
sglang:num_running_reqs{model_name="llama",dp_rank="0"} 161
sglang:num_running_reqs{model_name="llama",dp_rank="1"} 1
sglang:num_queue_reqs{model_name="llama"} 2826
"""

TGI = """\
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="1"} 0
tgi_request_generated_tokens_sum 5120
tgi_request_generated_tokens_count 40
tgi_request_input_length_sum 9000
tgi_batch_current_size 4
tgi_queue_size 0
"""

TRITON_TENSORRT = """\
nv_inference_request_success{model="tensorrt_llm",version="1"} 55
nv_inference_pending_request_count{model="ensemble",version="1"} 9
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 2
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 6
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_llm_input_token_len_sum{model="tensorrt_llm",response_metric_type="total_input_tokens",version="1"} 700
nv_llm_output_token_len_sum{model="tensorrt_llm",response_metric_type="total_output_tokens",version="1"} 300
"""  # noqa: E501

TRITON_PLAIN = """\
nv_inference_request_success{model="resnet",version="1"} 55
nv_inference_pending_request_count{model="resnet",version="1"} 3
nv_inference_pending_request_count{model="bert",version="2"} 4
"""

TRITON_VLLM = """\
nv_inference_pending_request_count{model="llm",version="1"} 3
vllm:prompt_tokens_total{model="llm",version="1"} 10
vllm:generation_tokens_total{model="llm",version="1"} 16
"""

LLAMACPP = """\
llamacpp:prompt_tokens_total 1031
llamacpp:tokens_predicted_total 4096
llamacpp:prompt_tokens_seconds 3.5
llamacpp:requests_processing 1
llamacpp:requests_deferred 0
"""

GENERIC = """\
llama_prompt_tokens_total{backend="x",model="a",mode="completion"} 100
llama_prompt_tokens_total{backend="x",model="a",mode="embedding"} 11
llama_generation_tokens_total{backend="x",model="a"} 7
llama_cached_prompt_tokens_total{model="a"} 90
llama_tokens_total{model="a"} 118
other_tokens_total 5
"""


def read(text: str) -> AppReading:
    return read_samples("here", parse_exposition("here", text.encode()))


Tokens = dict[tuple[str, str], float]


@pytest.mark.parametrize(
    ("text", "engine", "tokens", "running", "waiting"),
    [
        pytest.param(
            SGLANG,
            "sglang",
            {("llama", "generation"): 7_557_572.0, ("llama", "prompt"): 8_128_902.0},
            162.0,
            2826.0,
            id="sglang",
        ),
        pytest.param(
            TGI, "tgi", {("", "generation"): 5120.0, ("", "prompt"): 9000.0}, 4.0, 0.0, id="tgi"
        ),
        pytest.param(
            TRITON_TENSORRT,
            "triton",
            {("tensorrt_llm", "generation"): 300.0, ("tensorrt_llm", "prompt"): 700.0},
            6.0,
            2.0,
            id="triton-tensorrt",
        ),
        pytest.param(TRITON_PLAIN, "triton", {}, None, 7.0, id="triton-without-tokens"),
        pytest.param(
            TRITON_VLLM,
            "vllm",
            {("llm", "generation"): 16.0, ("llm", "prompt"): 10.0},
            None,
            None,
            id="triton-with-vllm",
        ),
        pytest.param(
            LLAMACPP,
            "llamacpp",
            {("", "generation"): 4096.0, ("", "prompt"): 1031.0},
            1.0,
            0.0,
            id="llamacpp",
        ),
        pytest.param(
            GENERIC,
            "generic",
            {("a", "generation"): 7.0, ("a", "prompt"): 111.0},
            None,
            None,
            id="generic",
        ),
        pytest.param(
            'served_tokens_total{model="b"} 12\n',
            "generic",
            {("b", "unknown"): 12.0},
            None,
            None,
            id="generic-of-unknown-kind",
        ),
    ],
)
def test_a_server_s_own_names_are_understood(
    text: str, engine: str, tokens: Tokens, running: float | None, waiting: float | None
) -> None:
    reading = read(text)

    assert reading.engine == engine
    assert {(count.model, count.kind): count.tokens_total for count in reading.tokens} == tokens
    assert (reading.requests_running, reading.requests_waiting) == (running, waiting)
    assert [absence.what for absence in reading.absent] == ([] if tokens else ["tokens"])


def test_a_server_that_makes_up_model_names_fills_nothing() -> None:
    lines = [f'vllm:prompt_tokens_total{{model_name="m{i}"}} 1' for i in range(SERIES_MAX + 50)]

    reading = read("\n".join(lines) + "\n")

    assert len(reading.tokens) == SERIES_MAX
    assert [a.reason for a in reading.absent if a.what == "tokens"] == [
        f"the first {SERIES_MAX} models and kinds are kept, 50 more are not"
    ]


def test_an_endpoint_without_tokens_says_so() -> None:
    reading = read("process_cpu_seconds_total 3\n")

    assert reading.engine == "generic"
    assert reading.tokens == ()
    assert [absence.what for absence in reading.absent] == ["tokens"]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(math.nan, id="nan"),
        pytest.param(-1.0, id="negative"),
        pytest.param(math.inf, id="infinite"),
        pytest.param(1e308, id="beyond counting"),
    ],
)
def test_a_sum_with_an_unusable_part_is_absent(bad: float) -> None:
    def count(name: str, value: float, rank: str) -> Sample:
        return Sample(name=name, labels={"model_name": "m", "rank": rank}, value=value)

    reading = read_samples(
        "here",
        [
            count("vllm:prompt_tokens_total", 5.0, "0"),
            count("vllm:prompt_tokens_total", bad, "1"),
            count("vllm:generation_tokens_total", 8.0, "0"),
            count("vllm:num_requests_running", 1.0, "0"),
            count("vllm:num_requests_running", bad, "1"),
            count("vllm:num_requests_waiting", 4.0, "0"),
        ],
    )

    assert [(tokens.kind, tokens.tokens_total) for tokens in reading.tokens] == [
        ("generation", 8.0)
    ]
    assert reading.requests_running is None
    assert reading.requests_waiting == 4.0
    assert [absence.what for absence in reading.absent] == ["tokens:m:prompt", "requests_running"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("vllm:prompt_tokens_total", True, id="known"),
        pytest.param("acme_tokens_total", True, id="generic"),
        pytest.param("vllm:iteration_tokens_total_bucket", False, id="bucket"),
        pytest.param("vllm:time_to_first_token_seconds_sum", False, id="histogram"),
        pytest.param("nv_inference_request_success", False, id="requests"),
    ],
)
def test_only_lines_that_some_dialect_reads_are_parsed(name: str, expected: bool) -> None:
    assert is_of_interest(name) is expected
