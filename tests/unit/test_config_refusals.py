"""One line for each mistake: what, where, and what would be right."""

from pathlib import Path

import pytest

from esnode.config import ConfigError, load
from tests.config_files import problems_of, write

KNOWN_PARTS = "(parts: a100, b200, h100, h200, l40s)"

FILE_MISTAKES = [
    pytest.param(
        "scrape_intervall = '5s'",
        "esnode.toml:1: unknown key 'scrape_intervall'; did you mean scrape_interval?",
        id="unknown-key-with-a-near-one",
    ),
    pytest.param(
        "\n\nzzz = 1",
        "esnode.toml:3: unknown key 'zzz'; `esnode config show` lists the keys",
        id="unknown-key-like-no-other",
    ),
    pytest.param(
        "[orchestrator]\ntokn = 'x'",
        "esnode.toml:2: unknown key 'orchestrator.tokn'; did you mean orchestrator.token?",
        id="unknown-key-in-a-table",
    ),
    pytest.param(
        "orchestrator = true",
        "esnode.toml:1: orchestrator: is not a table; write [orchestrator]",
        id="a-value-where-a-table-belongs",
    ),
    pytest.param(
        "scrape_interval = 5",
        "esnode.toml:1: scrape_interval: 5 has no unit; write it as text with one, "
        'e.g. "5s", "250ms", "2m"',
        id="number-without-unit",
    ),
    pytest.param(
        "scrape_interval = '5'",
        "esnode.toml:1: scrape_interval: '5' has no unit; write e.g. 5s, 250ms, 2m, 1h",
        id="text-without-unit",
    ),
    pytest.param(
        "scrape_interval = '5 fortnights'",
        "esnode.toml:1: scrape_interval: '5 fortnights' is not a duration; "
        "write e.g. 5s, 250ms, 2m, 1h",
        id="unknown-unit",
    ),
    pytest.param(
        "scrape_interval = '-5s'",
        "esnode.toml:1: scrape_interval: '-5s' is not a duration; write e.g. 5s, 250ms, 2m, 1h",
        id="negative-duration",
    ),
    pytest.param(
        "scrape_interval = '99ms'",
        "esnode.toml:1: scrape_interval: '99ms' is below the floor of 100ms",
        id="below-the-floor",
    ),
    pytest.param(
        "scrape_interval_seconds = 0.00001",
        "esnode.toml:1: scrape_interval_seconds: 1e-05 is below the floor of 100ms",
        id="old-spelling-below-the-floor",
    ),
    pytest.param(
        "scrape_interval_seconds = -1",
        "esnode.toml:1: scrape_interval_seconds: -1 is below the floor of 100ms",
        id="old-spelling-negative",
    ),
    pytest.param(
        "ipmi_interval = '2h'",
        "esnode.toml:1: ipmi_interval: '2h' is above the limit of 1h",
        id="above-the-limit",
    ),
    pytest.param(
        f"degradation_disk_latency = '{'9' * 400}s'",
        f"esnode.toml:1: degradation_disk_latency: '{'9' * 56}... is longer than any clock runs",
        id="a-duration-beyond-floating-point",
    ),
    pytest.param(
        "enable_cpu = 'maybe'",
        "esnode.toml:1: enable_cpu: 'maybe' is not a boolean; write true or false",
        id="not-a-boolean",
    ),
    pytest.param(
        "enable_cpu = [true]",
        "esnode.toml:1: enable_cpu: [True] is not a boolean; write true or false",
        id="list-for-a-boolean",
    ),
    pytest.param(
        "node_power_envelope_watts = '7kW'",
        "esnode.toml:1: node_power_envelope_watts: '7kW' is not a number",
        id="not-a-number",
    ),
    pytest.param(
        "node_power_envelope_watts = 0",
        "esnode.toml:1: node_power_envelope_watts: 0 must be above 0",
        id="zero-watts",
    ),
    pytest.param(
        "node_power_envelope_watts = inf",
        "esnode.toml:1: node_power_envelope_watts: inf is not a finite number",
        id="infinite",
    ),
    pytest.param(
        "node_power_envelope_watts = nan",
        "esnode.toml:1: node_power_envelope_watts: nan is not a finite number",
        id="not-any-number",
    ),
    pytest.param(
        f"node_power_envelope_watts = {'9' * 400}",
        f"esnode.toml:1: node_power_envelope_watts: {'9' * 57}... is not a finite number",
        id="an-integer-beyond-floating-point",
    ),
    pytest.param(
        "node_power_envelope_watts = true",
        "esnode.toml:1: node_power_envelope_watts: True is a boolean, not a number",
        id="boolean-for-a-number",
    ),
    pytest.param(
        "degradation_disk_busy_ratio = 80",
        "esnode.toml:1: degradation_disk_busy_ratio: 80 must lie between 0 and 1 (0.8 is 80 %)",
        id="percent-for-a-ratio",
    ),
    pytest.param(
        "gpu_process_count = 1.5",
        "esnode.toml:1: gpu_process_count: 1.5 must be a whole number",
        id="half-a-process",
    ),
    pytest.param(
        "energy_price_per_kilowatt_hour = -0.1",
        "esnode.toml:1: energy_price_per_kilowatt_hour: -0.1 must not be below 0",
        id="negative-price",
    ),
    pytest.param(
        "listen_address = '9100'",
        "esnode.toml:1: listen_address: '9100' is not an address; write HOST:PORT, "
        "e.g. 127.0.0.1:9100 or [::1]:9100",
        id="port-alone",
    ),
    pytest.param(
        "listen_address = 9100",
        "esnode.toml:1: listen_address: 9100 is a number, not text",
        id="number-for-an-address",
    ),
    pytest.param(
        "listen_address = '::1:9100'",
        "esnode.toml:1: listen_address: '::1:9100' is an IPv6 address without brackets; "
        "write [::1]:9100",
        id="ipv6-without-brackets",
    ),
    pytest.param(
        "listen_address = '127.0.0.1:65536'",
        "esnode.toml:1: listen_address: '127.0.0.1:65536' has a port above 65535",
        id="port-too-high",
    ),
    pytest.param(
        f"listen_address = 'x:{'9' * 5000}'",
        f"esnode.toml:1: listen_address: 'x:{'9' * 54}... has a port above 65535",
        id="port-of-thousands-of-digits",
    ),
    pytest.param(
        "listen_address = 'a b:1'",
        "esnode.toml:1: listen_address: 'a b:1' has a host with characters that no host has; "
        "write e.g. 127.0.0.1:9100",
        id="host-with-a-blank",
    ),
    pytest.param(
        "app_metrics_url = 'ftp://x/metrics'",
        "esnode.toml:1: app_metrics_url: 'ftp://x/metrics' is not an http or https URL, "
        "e.g. http://127.0.0.1:8000/metrics",
        id="wrong-scheme",
    ),
    pytest.param(
        "app_metrics_url = ['http://a/metrics', 'http://b:99999/']",
        "esnode.toml:1: app_metrics_url: ['http://a/metrics', 'http://b:99999/'] holds "
        "'http://b:99999/', which is not an http or https URL, e.g. http://127.0.0.1:8000/metrics",
        id="one-bad-url-of-two",
    ),
    pytest.param(
        "app_metrics_url = [7]",
        "esnode.toml:1: app_metrics_url: [7] holds 7, which is a number, not text",
        id="number-for-a-url",
    ),
    pytest.param(
        "app_metrics_url = 7",
        'esnode.toml:1: app_metrics_url: 7 is a number, not a list; write e.g. ["a", "b"] or a,b',
        id="number-for-a-list",
    ),
    pytest.param(
        "metric_aliases = 'dcgm,nodes'",
        "esnode.toml:1: metric_aliases: 'dcgm,nodes' holds 'nodes', which is not one of "
        "esnode-core, dcgm",
        id="unknown-alias-set",
    ),
    pytest.param(
        "log_level = 'loud'",
        "esnode.toml:1: log_level: 'loud' is not one of trace, debug, info, warn, warning, error",
        id="unknown-word",
    ),
    pytest.param("state_dir = ''", "esnode.toml:1: state_dir: '' is empty", id="empty-text"),
    pytest.param(
        "log_level = 1979-05-27",
        "esnode.toml:1: log_level: 1979-05-27 is a date, not text",
        id="a-date",
    ),
    pytest.param(
        "tags = ['a']",
        "esnode.toml:1: tags: ['a'] is a list, not a table; write e.g. { env = \"prod\" }",
        id="list-for-a-table",
    ),
    pytest.param(
        "tags = { row = 7 }",
        "esnode.toml:1: tags: {'row': 7} has a number under 'row'; tags are texts",
        id="number-for-a-tag",
    ),
    pytest.param(
        "tags = 'prod'",
        "esnode.toml:1: tags: 'prod' is not a list of pairs; write e.g. env=prod,row=7",
        id="tag-without-a-value",
    ),
    pytest.param(
        "drivers = 1",
        "esnode.toml:1: drivers: the value is not an array of tables; write [[drivers]] sections",
        id="number-for-driver-tables",
    ),
    pytest.param(
        "scrape_interval = '5s'\nscrape_interval_seconds = 5",
        "esnode.toml: scrape_interval_seconds and scrape_interval are the same setting; "
        "keep one of them",
        id="two-spellings-of-one-key",
    ),
    pytest.param(
        "enable_cpu = ",
        "esnode.toml: is not valid TOML: Invalid value (at end of document)",
        id="not-toml",
    ),
    pytest.param(
        b"tags = { a = '\xff' }",
        "esnode.toml: is not UTF-8 text; TOML files are",
        id="not-utf-8",
    ),
    pytest.param(
        "hardware = 'h100x8'",
        "hardware: 'h100x8' is not auto or simulated:SPEC, e.g. simulated:h100x8",
        id="hardware-without-its-kind",
    ),
    pytest.param(
        "hardware = 'simulated:h100'",
        "hardware: 'h100' is not a simulated machine: write PARTxCOUNT, joined by +, such as "
        f"h100x8 or h100x4+l40sx2, or mixed {KNOWN_PARTS}",
        id="hardware-without-a-count",
    ),
    pytest.param(
        "hardware = 'simulated:k80x8'",
        f"hardware: 'k80x8' has no known part 'k80' {KNOWN_PARTS}",
        id="hardware-of-an-unknown-part",
    ),
    pytest.param(
        "tls_key_path = 'key.pem'",
        "tls_certificate_path: is not set; HTTPS needs a certificate and its key",
        id="key-without-certificate",
    ),
    pytest.param(
        "tls_certificate_path = 'chain.pem'",
        "tls_key_path: is not set; HTTPS needs a certificate and its key",
        id="certificate-without-key",
    ),
]


@pytest.mark.parametrize(("text", "expected"), FILE_MISTAKES)
def test_a_mistake_in_the_file_is_one_line(
    tmp_path: Path, text: str | bytes, expected: str
) -> None:
    assert problems_of(tmp_path, file=text) == [expected]


def test_an_integer_that_python_refuses_to_read_is_a_mistake_too(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, file=f"gpu_process_count = {'9' * 5000}")

    assert problem.startswith("esnode.toml: is not valid TOML: ")


def test_brackets_nested_beyond_reason_are_a_mistake_too(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, file="tags = " + "[" * 20_000)

    assert problem.startswith("esnode.toml: is not valid TOML: ")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param(
            {"ESNODE_ENABLE_CPUS": "true"},
            "ESNODE_ENABLE_CPUS: no such setting; did you mean ESNODE_ENABLE_CPU?",
            id="typo",
        ),
        pytest.param({"ESNODE_QQQ": "1"}, "ESNODE_QQQ: no such setting", id="like-no-other"),
        pytest.param({"ESNODE_PORT": "9100"}, "ESNODE_PORT: no such setting", id="a-mere-port"),
        pytest.param(
            {"ESNODE_SCRAPE_INTERVAL": "1"},
            "ESNODE_SCRAPE_INTERVAL: '1' has no unit; write e.g. 5s, 250ms, 2m, 1h",
            id="no-unit",
        ),
        pytest.param(
            {"ESNODE_NODE_POWER_ENVELOPE_WATTS": "inf"},
            "ESNODE_NODE_POWER_ENVELOPE_WATTS: 'inf' is not a finite number",
            id="infinite",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    tmp_path: Path, environment: dict[str, str], expected: str
) -> None:
    assert problems_of(tmp_path, environment=environment) == [expected]


@pytest.mark.parametrize(
    "variable",
    [
        "ESNODE_CONFIG=x", "ESNODE_AGENT=x", "ESNODE_NO_COLOR=x", "ESNODE_JOB_ID=x", "HOME=x",
        # Kubernetes, beside Services called esnode and esnode-metrics:
        "ESNODE_SERVICE_HOST=10.0.0.1", "ESNODE_SERVICE_PORT=9100", "ESNODE_SERVICE_PORT_HTTP=80",
        "ESNODE_PORT=tcp://10.0.0.1:9100", "ESNODE_PORT_9100_TCP=tcp://10.0.0.1:9100",
        "ESNODE_PORT_9100_TCP_ADDR=10.0.0.1", "ESNODE_METRICS_PORT=tcp://10.0.0.1:9100",
    ],
)  # fmt: skip
def test_variables_that_are_not_keys_are_left_alone(tmp_path: Path, variable: str) -> None:
    name, _, value = variable.partition("=")

    load(flags={}, environment={name: value}, file=None)


def test_a_mistake_in_a_flag_names_the_flag(tmp_path: Path) -> None:
    assert problems_of(tmp_path, flags={"orchestrator.enabled": "perhaps"}) == [
        "--orchestrator-enabled: 'perhaps' is not a boolean; write true or false"
    ]


def test_all_mistakes_are_found_at_once_in_the_order_file_environment_flags(
    tmp_path: Path,
) -> None:
    problems = problems_of(
        tmp_path,
        file="enable_cpu = 7\nenable_gpuu = true",
        environment={"ESNODE_ENABLE_DISK": "x"},
        flags={"enable_numa": "y"},
    )

    assert problems == [
        "esnode.toml:1: enable_cpu: 7 is not a boolean; write true or false",
        "esnode.toml:2: unknown key 'enable_gpuu'; did you mean enable_gpu?",
        "ESNODE_ENABLE_DISK: 'x' is not a boolean; write true or false",
        "--enable-numa: 'y' is not a boolean; write true or false",
    ]


@pytest.mark.parametrize(
    ("sources", "secret"),
    [
        pytest.param({"file": "[orchestrator]\ntoken = 12345678"}, "12345678", id="token"),
        pytest.param(
            {"file": "managed_join_token = ['hunter2']"}, "hunter2", id="token-of-a-wrong-kind"
        ),
        pytest.param(
            {"environment": {"ESNODE_APP_METRICS_URL": "ftp://u:hunter2@host/"}},
            "hunter2",
            id="password-in-a-bad-url",
        ),
        pytest.param(
            {"file": "app_metrics_url = ['http://a', 'ftp://u:hun@ter2@host/']"},
            "ter2",
            id="password-in-a-bad-url-of-a-list",
        ),
        pytest.param(
            {"file": "drivers = { community = 'hunter2' }"}, "hunter2", id="driver-parameters"
        ),
    ],
)
def test_no_message_shows_a_secret(tmp_path: Path, sources: dict[str, object], secret: str) -> None:
    (problem,) = problems_of(tmp_path, **sources)  # type: ignore[arg-type]

    assert secret not in problem


def test_a_folder_in_place_of_the_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(flags={}, environment={}, file=tmp_path)

    assert caught.value.problems == (f"{tmp_path}: cannot be read: Is a directory",)


def test_the_line_number_is_that_of_the_key_in_its_own_table(tmp_path: Path) -> None:
    text = '[[drivers]]\nenable_cpu = 1\n[tags]\nenabled = "x"\n[orchestrator]\nenabled = "x"\n'

    (problem,) = problems_of(tmp_path, file=text)

    assert problem.startswith("esnode.toml:6: orchestrator.enabled: ")
    assert write(tmp_path, text).exists()
