"""Nodes of one cluster meet over TLS on loopback; whoever is of another cluster does not."""

import ssl
from functools import partial
from pathlib import Path

import pytest
import trio

from cluster.credentials import save_node
from cluster.enrolment import NodeKeys, add_operator
from cluster.errors import Malformed
from cluster.identity.files import IdentityUnusable
from cluster.ids import NodeId, parse_node_name
from cluster.keyring import write_certificates_pem
from cluster.tls import client_context, read_peer_certificate, server_context
from tests.identities import NOW, Lab

LAB = Lab()


def folder_of(node: NodeKeys, tmp_path: Path) -> Path:
    folder = tmp_path / node.identity.node_id.short
    save_node(folder, node)
    return folder


def public_key_of(peer: trio.SSLStream[trio.SocketStream]) -> bytes:
    return read_peer_certificate(peer.getpeercert(binary_form=True)).public_key or b""


async def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[bytes, bytes]:
    """Who each side saw: the server's peer, the client's peer. Raises what the handshake raises."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    seen: list[bytes] = []
    failures: list[BaseException] = []

    async def serve(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, server, server_side=True)
        try:
            await wrapped.do_handshake()
            seen.append(public_key_of(wrapped))
            await wrapped.send_all(b"!")
        except trio.BrokenResourceError as error:
            failures.append(error.__cause__ or error)
            await trio.aclose_forcefully(wrapped)

    async with trio.open_nursery() as nursery:
        await nursery.start(partial(trio.serve_listeners, serve, listeners))
        port = listeners[0].socket.getsockname()[1]
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        wrapped = trio.SSLStream(stream, client)
        with trio.fail_after(10):
            try:
                await wrapped.do_handshake()
                # With TLS 1.3 the client hears of a refusal only when it reads.
                assert await wrapped.receive_some(1) == b"!"
                met = public_key_of(wrapped)
            except trio.BrokenResourceError as error:
                failures.append(error.__cause__ or error)
            await trio.aclose_forcefully(wrapped)
        nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]
    return seen[0], met


async def test_two_nodes_of_one_cluster_meet_and_see_each_other_s_keys(tmp_path: Path) -> None:
    one, two = LAB.join(LAB.invite(), "gpu-01"), LAB.join(LAB.invite("r02"), "gpu-02")

    seen = await shake_hands(
        server_context(folder_of(one, tmp_path), LAB.keys.authority),
        client_context(folder_of(two, tmp_path), LAB.keys.authority),
    )

    ids = tuple(NodeId.of_public_key(key) for key in seen)
    assert ids == (two.identity.node_id, one.identity.node_id)


@pytest.mark.parametrize("foreigner", ["server", "client"])
async def test_a_node_of_another_cluster_is_refused(foreigner: str, tmp_path: Path) -> None:
    other = Lab(seed=2)
    ours = folder_of(LAB.join(LAB.invite(), "gpu-01"), tmp_path)
    theirs = folder_of(other.join(other.invite(), "gpu-01"), tmp_path)
    # Whichever side is foreign trusts us, so that only we can refuse.
    if foreigner == "server":
        contexts = (
            server_context(theirs, LAB.keys.authority),
            client_context(ours, LAB.keys.authority),
        )
    else:
        contexts = (
            server_context(ours, LAB.keys.authority),
            client_context(theirs, LAB.keys.authority),
        )

    with pytest.raises(ssl.SSLError):
        await shake_hands(*contexts)


async def test_a_peer_without_a_certificate_is_refused(tmp_path: Path) -> None:
    ours = folder_of(LAB.join(LAB.invite(), "gpu-01"), tmp_path)
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.check_hostname = False
    anonymous.verify_mode = ssl.CERT_NONE

    with pytest.raises(ssl.SSLError):
        await shake_hands(server_context(ours, LAB.keys.authority), anonymous)


async def test_an_operator_s_certificate_is_no_node_s(tmp_path: Path) -> None:
    ours = folder_of(LAB.join(LAB.invite(), "gpu-01"), tmp_path)
    operator = add_operator(
        LAB.keys, parse_node_name("alice"), now_unix_seconds=NOW, random_bytes=LAB.random_bytes
    )
    folder = tmp_path / "operator"
    folder.mkdir()
    (folder / "node.key").write_bytes(operator.signer.to_pem())
    (folder / "node.crt").write_bytes(write_certificates_pem(operator.certificate))

    with pytest.raises(ssl.SSLError):
        await shake_hands(
            server_context(ours, LAB.keys.authority), client_context(folder, LAB.keys.authority)
        )


@pytest.mark.parametrize(
    "now",
    [pytest.param(1_000_000_000, id="ended-in-2001"), pytest.param(4_000_000_000, id="of-2096")],
)
async def test_tls_does_not_look_at_the_clock(now: int, tmp_path: Path) -> None:
    old = Lab(seed=3, now=now)
    invite = old.invite(lifetime_days=1)
    one, two = old.join(invite, "gpu-01"), old.join(invite, "gpu-02")

    seen = await shake_hands(
        server_context(folder_of(one, tmp_path), old.keys.authority),
        client_context(folder_of(two, tmp_path), old.keys.authority),
    )

    assert seen == (two.signer.public_key, one.signer.public_key)


def test_a_peer_without_a_certificate_is_nobody() -> None:
    with pytest.raises(Malformed, match="a peer without a certificate"):
        read_peer_certificate(None)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param(b"torn", "cannot be used", id="torn"),
    ],
)
def test_what_tls_cannot_use_is_said_in_one_line(
    content: bytes | None, line: str, tmp_path: Path
) -> None:
    folder = folder_of(LAB.join(LAB.invite(), "gpu-01"), tmp_path)
    (folder / "node.crt").unlink()
    if content is not None:
        (folder / "node.crt").write_bytes(content)

    with pytest.raises(IdentityUnusable) as caught:
        server_context(folder, LAB.keys.authority)

    assert str(caught.value).startswith(f"{folder}: TLS cannot use key and certificate: ")
    assert "\n" not in str(caught.value)
    assert line in str(caught.value) or content is not None
