"""HTTPS: a certificate and its key, and the mistakes made with them."""

import http.client
import ssl
from pathlib import Path

import pytest
import trustme

from tests.agents import run_esnode, started_agent

pytestmark = pytest.mark.process


def certificate(folder: Path) -> tuple[Path, Path, Path]:
    """(authority, chain, key) for 127.0.0.1, as PEM files."""
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    paths = (folder / "ca.pem", folder / "chain.pem", folder / "key.pem")
    authority.cert_pem.write_to_path(paths[0])
    made.cert_chain_pems[0].write_to_path(paths[1])
    made.private_key_pem.write_to_path(paths[2])
    return paths


def test_the_agent_serves_https_and_the_command_line_finds_it(tmp_path: Path) -> None:
    authority, chain, key = certificate(tmp_path)
    flags = (f"--tls-certificate-path={chain}", f"--tls-key-path={key}", "--scrape-interval=1s")

    with started_agent(tmp_path, *flags) as agent:
        agent.wait_for_event("agent_started", seconds=30)
        port = int(str(agent.events("agent_started")[0]["addresses"][0]).rpartition(":")[2])  # type: ignore[index]
        context = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        status = run_esnode(
            tmp_path,
            f"--state-dir={agent.state_dir}",
            "status",
            SSL_CERT_FILE=str(authority),
        )
        stranger = run_esnode(tmp_path, f"--state-dir={agent.state_dir}", "status")

    assert answer.status == 200
    assert b"esnode_cpu_load1" in body
    assert status.returncode == 0, status.stderr
    assert stranger.returncode == 3
    assert "certificate" in stranger.stderr.lower()


@pytest.mark.parametrize(
    ("chain_text", "said"),
    [
        pytest.param(None, "No such file", id="no such file"),
        pytest.param(
            "not a certificate", "needs a PEM certificate chain and its key", id="not PEM"
        ),
    ],
)
def test_an_unusable_certificate_is_one_line(
    tmp_path: Path, chain_text: str | None, said: str
) -> None:
    chain = tmp_path / "chain.pem"
    if chain_text is not None:
        chain.write_text(chain_text)

    ended = run_esnode(
        tmp_path, "agent", "--listen-address=127.0.0.1:0", f"--state-dir={tmp_path / 's'}",
        f"--tls-certificate-path={chain}", f"--tls-key-path={chain}",
    )  # fmt: skip

    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert said in ended.stderr.splitlines()[-1]
