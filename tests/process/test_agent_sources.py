"""Sources that hang, that are elsewhere, and that are off, under a real agent."""

import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from tests.agents import AgentProcess, needs_root, running_agent, wait_until
from tests.host_trees import write_tree
from tests.programs import dies, write_program

pytestmark = pytest.mark.process

QUICK = ("--scrape-interval=200ms", "--collect-deadline=300ms")

MOUNTINFO = """\
21 1 254:0 / {good} rw,relatime shared:1 - ext4 /dev/vda rw
22 1 0:40 / {hung} rw,relatime shared:2 - fuse.never server:/export rw
"""

HUNG_MOUNT = """
import ctypes, os, sys, time

# A FUSE filesystem whose server never answers: statfs(2) on it waits for ever, as on a dead
# network filesystem. A child keeps the server's end open for as long as the agent lives.
where, command = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
server = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"never", where.encode(), b"fuse", 0, options) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
if os.fork() == 0:
    libc.prctl(1, 9)  # PR_SET_PDEATHSIG: end with the agent
    time.sleep(120)
    os._exit(0)
os.close(server)
os.execvp(command[0], command)
"""


def state(agent: AgentProcess, collector: str, target: str = "") -> tuple[str, str]:
    sources = agent.status()["sources"]
    assert isinstance(sources, list)
    for source in sources:
        if (source["collector"], source["target"]) == (collector, target):
            return source["state"], source["reason"]
    return "unknown", ""


def test_an_ipmitool_that_hangs_is_killed_and_delays_nothing(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs, f"echo $$ > {tmp_path}/ipmitool.pid\nexec sleep 60")
    with running_agent(
        tmp_path,
        *QUICK,
        "--ipmi-deadline=1s",
        "--ipmi-interval=1s",
        PATH=f"{programs}:{os.environ['PATH']}",
    ) as agent:
        wait_until(lambda: state(agent, "ipmi")[0] == "failed", seconds=10, why="ipmi has failed")

        assert state(agent, "ipmi")[1] == (
            "ipmitool dcmi power reading had no answer after 1 s and was killed"
        )
        assert agent.get("/healthz").status == 200
        assert agent.value("esnode_cpu_load1") is not None
        assert agent.end() < 2
    assert dies(int((tmp_path / "ipmitool.pid").read_text()))


def test_an_agent_that_ends_leaves_no_ipmitool_behind(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    pid = tmp_path / "pid"
    write_program(programs, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60")
    with running_agent(
        tmp_path, *QUICK, "--ipmi-deadline=50s", PATH=f"{programs}:{os.environ['PATH']}"
    ) as agent:
        wait_until(pid.exists, seconds=10, why="ipmitool runs")

        assert agent.end() < 2
    assert dies(int(pid.read_text()))


@needs_root
@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no FUSE in this kernel")
def test_a_mount_that_never_answers_hides_no_other(tmp_path: Path) -> None:
    good, hung = tmp_path / "good", tmp_path / "hung"
    good.mkdir()
    hung.mkdir()
    procfs = write_tree(tmp_path / "proc", {"1/mountinfo": MOUNTINFO.format(good=good, hung=hung)})
    (tmp_path / "mount.py").write_text(HUNG_MOUNT)
    with running_agent(
        tmp_path,
        *QUICK,
        f"--procfs-path={procfs}",
        within=("unshare", "--mount", sys.executable, str(tmp_path / "mount.py"), str(hung)),
    ) as agent:
        wait_until(
            lambda: state(agent, "filesystem", str(hung))[0] == "stalled",
            seconds=10,
            why="the hung mount counts as stalled",
        )

        sizes = agent.samples("esnode_filesystem_size_bytes")
        assert [labels for labels in sizes if str(good) in labels]
        assert not [labels for labels in sizes if str(hung) in labels]
        assert state(agent, "filesystem", str(good))[0] == "ok"
        assert agent.get("/healthz").json()["status"] == "ok"
        threads = len(os.listdir(f"/proc/{agent.pid}/task"))
        time.sleep(1.5)
        assert len(os.listdir(f"/proc/{agent.pid}/task")) <= threads + 1
        assert agent.end() < 2
        assert agent.process.returncode == 0


def test_the_host_is_read_where_it_is_mounted(tmp_path: Path, linux_host_tree: Path) -> None:
    with running_agent(
        tmp_path,
        *QUICK,
        f"--procfs-path={linux_host_tree}/proc",
        f"--sysfs-path={linux_host_tree}/sys",
    ) as agent:
        wait_until(lambda: agent.value("esnode_cpu_load1") == 0.21, seconds=5, why="its load")

        assert agent.value("esnode_memory_total_bytes") == 3742148 * 1024
        assert agent.samples("esnode_disk_reads_completed_total")['{device="sda"}'] == 25354637
        assert agent.get("/healthz").status == 200


def test_a_host_without_anything_is_still_served(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    with running_agent(
        tmp_path,
        *QUICK,
        f"--procfs-path={nothing}",
        f"--sysfs-path={nothing}",
        f"--rootfs-path={nothing}",
    ) as agent:
        wait_until(lambda: state(agent, "cpu")[0] == "failed", seconds=5, why="cpu has failed")

        assert agent.get("/healthz").status == 200
        assert agent.status()["healthy"] is False
        assert agent.status()["mem_total_bytes"] is None
        assert not agent.samples("esnode_memory_total_bytes")
        assert "Traceback" not in agent.log_path.read_text()
        assert not agent.events("collector_bug")


def open_files(pid: int) -> list[str]:
    """What a process has open; files that it closes meanwhile are left out."""
    opened = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            opened.append(os.readlink(link))
    return opened


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
def test_gpus_that_are_off_load_no_driver_library(tmp_path: Path, is_on: bool) -> None:
    # Any library under the driver's name: it is opened, and found to be another one.
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    (some_library, *_) = [path for path in sorted(mapped) if "libc.so" in path or "libm.so" in path]
    libraries = tmp_path / "lib"
    libraries.mkdir()
    (libraries / "libnvidia-ml.so.1").write_bytes(Path(some_library).read_bytes())

    with running_agent(
        tmp_path,
        *QUICK,
        f"--enable-gpu={str(is_on).lower()}",
        LD_LIBRARY_PATH=str(libraries),
    ) as agent:
        if is_on:
            wait_until(
                lambda: state(agent, "gpu")[0] in ("failed", "unavailable"),
                seconds=5,
                why="the library is tried",
            )
            assert len(state(agent, "gpu")[1].splitlines()) == 1
        assert agent.value("esnode_cpu_load1") is not None

        is_loaded = "libnvidia-ml" in Path(f"/proc/{agent.pid}/maps").read_text()
        opened = open_files(agent.pid)

        assert is_loaded is is_on
        assert not [path for path in opened if "nvidia" in path]
        assert agent.get("/healthz").status == 200
