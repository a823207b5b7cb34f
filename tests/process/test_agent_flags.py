"""Bad arguments: one line for each mistake, exit code 2, and nothing left behind."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.agents import run_esnode

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(
            ["--scrape-interval=5"],
            "esnode: --scrape-interval: '5' has no unit; write e.g. 5s, 250ms, 2m, 1h",
            id="a duration without a unit",
        ),
        pytest.param(
            ["--scrape-interval=3ms"],
            "esnode: --scrape-interval: '3ms' is below the floor of 100ms",
            id="below the floor",
        ),
        pytest.param(
            ["--listen-address=9100"],
            "esnode: --listen-address: '9100' is not an address; write HOST:PORT, "
            "e.g. 127.0.0.1:9100 or [::1]:9100",
            id="a port alone",
        ),
        pytest.param(
            ["--listen-address=127.0.0.1:65536"],
            "esnode: --listen-address: '127.0.0.1:65536' has a port above 65535",
            id="a port that does not exist",
        ),
        pytest.param(
            ["--enable-gpu=maybe"],
            "esnode: --enable-gpu: 'maybe' is not a boolean; write true or false",
            id="neither true nor false",
        ),
        pytest.param(
            ["--hardware=h100"],
            "esnode: hardware: 'h100' is not auto or simulated:SPEC, e.g. simulated:h100x8",
            id="unknown hardware",
        ),
        pytest.param(
            ["--metric-aliases=dcmg"],
            "esnode: --metric-aliases: 'dcmg' is not one of esnode-core, dcgm",
            id="an unknown alias set",
        ),
        pytest.param(
            ["--tls-certificate-path=/x"],
            "esnode: tls_key_path: is not set; HTTPS needs a certificate and its key",
            id="half of TLS",
        ),
    ],
)
def test_a_bad_value_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: Sequence[str], line: str
) -> None:
    done = run_esnode(tmp_path, "agent", f"--state-dir={tmp_path}/state", *arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")
    assert list(tmp_path.iterdir()) == []


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "esnode.toml"
    file.write_text("enable_cpu = 'perhaps'\nenable_gpus = true\n")

    done = run_esnode(
        tmp_path, "agent", "--scrape-interval=x", ESNODE_ENABLE_DISK="2", ESNODE_ENABEL_GPU="1"
    )

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"esnode: {file}:1: enable_cpu: 'perhaps' is not a boolean; write true or false",
        f"esnode: {file}:2: unknown key 'enable_gpus'; did you mean enable_gpu?",
        "esnode: ESNODE_ENABLE_DISK: '2' is not a boolean; write true or false",
        "esnode: ESNODE_ENABEL_GPU: no such setting; did you mean ESNODE_ENABLE_GPU?",
        "esnode: --scrape-interval: 'x' is not a duration; write e.g. 5s, 250ms, 2m, 1h",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["agnet"], "no command 'agnet'; did you mean agent?", id="a command"),
        pytest.param(["agent", "--scrape-intervall=1s"], "--scrape-interval", id="an option"),
        pytest.param(["--config=none.toml", "agent"], "none.toml", id="a file"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_what_was_meant(
    tmp_path: Path, arguments: Sequence[str], said: str
) -> None:
    done = run_esnode(tmp_path, *arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_is_not_ours_says_so(tmp_path: Path) -> None:
    done = run_esnode(
        tmp_path, "agent", "--listen-address=192.0.2.1:0", f"--state-dir={tmp_path}/s"
    )

    assert done.returncode == 1
    assert done.stderr == (
        "esnode: listen_address: 192.0.2.1 is not an address of this machine; use 0.0.0.0\n"
    )
