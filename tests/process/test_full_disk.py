"""A full disk loses no configuration and stops no telemetry."""

from pathlib import Path

import pytest

from tests.agents import needs_root, private_mounts, run_esnode, running_agent

pytestmark = [pytest.mark.process, needs_root]

BEFORE = "# written by hand\nscrape_interval = '7s'\n"


def full_disk(at: Path, first: str = "true") -> str:
    """A shell script: a small disk at `at`, on which `first` is done before it is filled."""
    fill = f"cat /dev/zero > '{at}/fill' 2>/dev/null; true"
    return f"mount -t tmpfs -o size=64k,mode=700 none '{at}' && {first} && {{ {fill}; }}"


def test_config_set_on_a_full_disk_keeps_the_file(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    original = tmp_path / "original"
    original.write_text(BEFORE)
    file = disk / "esnode.toml"
    script = full_disk(disk, f"cp '{original}' '{file}'")
    copy_out = f"sh -c '\"$@\"; code=$?; cat {file}; ls -A {disk}; exit $code' sh"

    done = run_esnode(
        tmp_path,
        f"--config={file}",
        "config",
        "set",
        "tags=" + ",".join(f"key{i}={'v' * 50}" for i in range(200)),
        within=(*private_mounts(f'{script} && set -- {copy_out} "$@"'),),
    )

    assert done.returncode == 2
    assert done.stderr == f"esnode: {file}: cannot be written: No space left on device\n"
    assert done.stdout == f"{BEFORE}esnode.toml\nfill\n"


def test_an_agent_whose_state_folder_is_full_still_serves(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with running_agent(tmp_path, state_dir=state, within=private_mounts(full_disk(state))) as agent:
        assert agent.get("/metrics").status == 200
        assert agent.value("esnode_cpus") is not None
        (warning,) = agent.events("state_dir_unusable")
        assert "No space left on device" in str(warning["detail"])

        agent.end()
        assert agent.process.returncode == 0
        assert "Traceback" not in agent.log_path.read_text()
