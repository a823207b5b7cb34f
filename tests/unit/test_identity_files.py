"""Folders with keys: whole or not there, private or refused, and one line for whatever is wrong."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.credentials import (
    load_node,
    load_operator,
    save_node,
    save_operator,
    save_renewal,
)
from cluster.enrolment import add_operator, renew
from cluster.identity.files import (
    IdentityUnusable,
    authority_folder,
    check_folder,
    create_folder,
    node_folder,
    read_file,
    read_optional_file,
    replace_file,
)
from cluster.ids import parse_cluster_name, parse_node_name
from tests.identities import DAY, NOW, Lab

LAB = Lab()
NODE = LAB.join(LAB.invite(), "gpu-17")
OPERATOR = add_operator(
    LAB.keys, parse_node_name("alice"), now_unix_seconds=NOW, random_bytes=LAB.random_bytes
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = node_folder(tmp_path / "state")
    save_node(folder, NODE)
    return folder


def test_folders_lie_where_operators_look_for_them() -> None:
    home = Path("/home/alice/.config")

    assert authority_folder(home, parse_cluster_name("lab")) == home / "esnode" / "lab"
    assert node_folder(Path("/var/lib/esnode")) == Path("/var/lib/esnode/identity")


def test_a_node_is_itself_after_a_restart(folder: Path) -> None:
    loaded = load_node(folder)

    assert loaded.identity == NODE.identity
    assert loaded.chain == NODE.chain
    assert loaded.signer.public_key == NODE.signer.public_key
    assert loaded.seeds == NODE.seeds


def test_nobody_else_reads_what_was_saved(folder: Path) -> None:
    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        "node.key": 0o600,
        "node.crt": 0o600,
        "authority.crt": 0o600,
        "seeds": 0o600,
    }


def test_an_identity_is_not_overwritten(folder: Path) -> None:
    with pytest.raises(IdentityUnusable) as caught:
        save_node(folder, LAB.join(LAB.invite(), "gpu-18"))

    assert str(caught.value) == f"{folder}: is there already; move it away first"
    assert load_node(folder).identity == NODE.identity
    assert [path.name for path in folder.parent.iterdir()] == ["identity"]


def test_an_operator_keeps_both_keys_and_may_take_either_away(tmp_path: Path) -> None:
    folder = authority_folder(tmp_path, parse_cluster_name("lab"))
    save_operator(folder, LAB.keys, OPERATOR)

    whole = load_operator(folder)
    (folder / "authority.key").unlink()
    without_authority = load_operator(folder)
    (folder / "operator.key").unlink()
    without_keys = load_operator(folder)

    assert whole.authority_keys is not None
    assert whole.authority_keys.signer.public_key == LAB.keys.signer.public_key
    assert whole.operator_keys is not None
    assert whole.operator_keys.operator == OPERATOR.operator
    assert without_authority.authority_keys is None
    assert without_authority.operator_keys is not None
    assert without_keys.operator_keys is None
    assert without_keys.authority.cluster_id == LAB.keys.authority.cluster_id


def test_a_renewal_changes_the_certificate_and_keeps_the_key(folder: Path) -> None:
    renewed = renew(
        NODE,
        LAB.invite(lifetime_days=900),
        now_unix_seconds=NOW + 9,
        random_bytes=LAB.random_bytes,
    )

    save_renewal(folder, renewed)

    loaded = load_node(folder)
    assert loaded.identity == renewed.identity
    assert loaded.identity.node_id == NODE.identity.node_id
    assert mode(folder / "node.crt") == 0o600
    assert not list(folder.glob(".*"))


def test_a_renewal_of_another_key_is_refused(folder: Path) -> None:
    with pytest.raises(IdentityUnusable, match=r"node\.key: is not the key of the renewed"):
        save_renewal(folder, LAB.join(LAB.invite(), "gpu-17"))


def tear(name: str, keep_bytes: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:keep_bytes])

    return damage


def put(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def foreign(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        elsewhere = Lab(seed=2)
        save_node(folder.parent / "other", elsewhere.join(elsewhere.invite(), "gpu-17"))
        shutil.copy(folder.parent / "other" / name, folder / name)

    return damage


def make_pipe(folder: Path) -> None:
    (folder / "node.key").unlink()
    os.mkfifo(folder / "node.key", 0o600)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        pytest.param(lambda f: shutil.rmtree(f), "{}: is missing", id="no-folder"),
        pytest.param(
            lambda f: f.chmod(0o755),
            "{}: is open to other users (mode 0755); chmod 700 it",
            id="open-folder",
        ),
        pytest.param(
            lambda f: (f / "node.key").chmod(0o640),
            "{}/node.key: is open to other users (mode 0640); chmod 600 it",
            id="open-key",
        ),
        pytest.param(
            lambda f: (f / "node.key").unlink(), "{}/node.key: is missing", id="missing-key"
        ),
        pytest.param(
            tear("node.key", 60),
            "{}/node.key: not a private key in PEM without a password; restore it from a copy",
            id="torn-key",
        ),
        pytest.param(
            tear("node.key", 0), "{}/node.key: is empty; restore it from a copy", id="empty-key"
        ),
        pytest.param(
            tear("node.crt", 300),
            "{}/node.crt: not certificates in PEM; restore it from a copy",
            id="torn-chain",
        ),
        pytest.param(
            tear("authority.crt", 300),
            "{}/authority.crt: not certificates in PEM; restore it from a copy",
            id="torn-authority",
        ),
        pytest.param(
            put("seeds", b"nonsense\n"),
            "{}/seeds: seed 'nonsense' is not HOST:PORT, e.g. gpu-01:7947; restore it from a copy",
            id="torn-seeds",
        ),
        pytest.param(
            put("seeds", b"\xff\n"),
            "{}/seeds: not a list of addresses; restore it from a copy",
            id="binary-seeds",
        ),
        pytest.param(
            put("node.key", b"x" * 65_537),
            "{}/node.key: is larger than 65536 bytes; not a file of ours",
            id="large-key",
        ),
        pytest.param(make_pipe, "{}/node.key: is not a plain file", id="a-pipe"),
        pytest.param(
            foreign("node.key"),
            "{}/node.key: is not the key of the certificate beside it",
            id="foreign-key",
        ),
        pytest.param(
            foreign("node.crt"),
            "{}/node.crt: certificate of 'invite to rack r01': comes from another cluster",
            id="foreign-chain",
        ),
        pytest.param(
            foreign("authority.crt"),
            "{}/node.crt: certificate of 'invite to rack r01': comes from another cluster",
            id="foreign-authority",
        ),
        pytest.param(
            lambda f: shutil.copy(f / "node.crt", f / "authority.crt"),
            "{}/authority.crt: holds 2 certificates, not one",
            id="two-authorities",
        ),
    ],
)
def test_a_torn_foreign_or_open_file_is_said_in_one_line(
    damage: Callable[[Path], object], line: str, folder: Path
) -> None:
    damage(folder)

    with pytest.raises(IdentityUnusable) as caught:
        load_node(folder)

    assert str(caught.value) == line.format(folder)


def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    owner = os.geteuid()
    if owner == 0:
        # What root owns is good for everybody, so root needs a file that is not root's.
        os.chown(folder / "node.key", 12_345, 12_345)
    asking = 0 if owner == 0 else owner + 1

    with pytest.raises(IdentityUnusable, match=r"node\.key: belongs to user \d+, not to user \d+"):
        read_file(folder / "node.key", owner=lambda: asking)


def test_a_folder_that_is_a_file_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "identity"
    path.write_text("")

    with pytest.raises(IdentityUnusable, match="identity: is not a folder"):
        check_folder(path)
    with pytest.raises(IdentityUnusable, match="identity: is there already"):
        create_folder(path, {"a": b"a"})


def test_what_a_killed_run_left_does_not_matter(folder: Path) -> None:
    (folder / ".node.crt.new").write_bytes(b"half a certif")
    (folder.parent / ".identity-abc123").mkdir()

    replace_file(folder / "node.crt", (folder / "node.crt").read_bytes())

    assert load_node(folder).identity == NODE.identity
    assert not (folder / ".node.crt.new").exists()


def test_a_disk_that_refuses_is_said_in_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")

    with pytest.raises(IdentityUnusable) as caught:
        save_node(node_folder(tmp_path / "state"), NODE)

    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_failed_write_leaves_no_half_folder(tmp_path: Path) -> None:
    with pytest.raises(IdentityUnusable):
        create_folder(tmp_path / "identity", {"good": b"x", "no/such/folder": b"y"})

    assert list(tmp_path.iterdir()) == []


def test_an_optional_file_may_be_away(tmp_path: Path) -> None:
    assert read_optional_file(tmp_path / "authority.key") is None


def test_a_certificate_that_has_ended_still_loads(folder: Path) -> None:
    # Loading knows no time: an old certificate takes roles away, it does not stop the node.
    assert load_node(folder).identity.window.end_unix_seconds < NOW + 9999 * DAY
