"""What a job finds when it runs, what it may, and where its output goes."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from esnode.workloads.adapters import StartRefused
from tests.agents import needs_root, private_mounts
from tests.job_processes import NOBODY, bench, cpu_seconds, memory_kibibytes

pytestmark = pytest.mark.process


@pytest.fixture
def place(tmp_path):
    with bench(tmp_path / "jobs") as made:
        yield made


@pytest.fixture
def open_place():
    """Where other users come to as well, unlike a folder of this test runner's."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        with bench(Path(folder) / "jobs") as made:
            yield made


def test_a_flood_of_output_stays_within_its_files_and_blocks_nothing(place):
    job = place.bash("yes | head -c 1073741824", logs={"size": "1MiB", "files": 3})

    seen = place.wait_for_end(job, seconds=60)

    kept = [path.stat().st_size for path in place.path(job).glob("output.log*")]
    assert len(kept) == 3
    assert sum(kept) <= 3 << 20
    assert place.state(job)["output_bytes_total"] == 1 << 30
    assert seen.output_lost_bytes == 0


def test_a_limit_on_files_loses_output_and_not_the_job(place):
    """The supervisor itself is under the limit, as on a disk that takes no more."""
    job = place.job("bash", "-c", "head -c 3000000 /dev/zero; echo done > done")
    place.prepare(job)
    limited = ["prlimit", "--fsize=200000", *place.supervisor_command(job)]
    subprocess.run(limited, check=True, env={"PATH": os.defpath})

    seen = place.wait_for_end(job)

    assert seen.exit_code == 0
    assert place.path(job, "work/done").exists()
    state = place.state(job)
    assert state["output_bytes_total"] == 200_000
    assert state["output_lost_bytes_total"] == 2_800_000
    assert state["trouble"] == "output was lost: File too large"


@needs_root
def test_a_job_of_another_user_has_that_users_rights_only(open_place):
    place = open_place
    other = place.bash("echo secret > mine; echo out; sleep 600", uid=NOBODY - 1)
    place.wait_for_text(place.path(other, "work/mine"))
    job = place.bash(
        f"other={place.path(other)}; id -u; id -G; umask; grep NoNewPrivs /proc/self/status; "
        "cat $other/work/mine $other/output.log; ls $other; "
        "cat ../fence ../launch-1.json; echo x > ../fence; readlink /proc/self/fd/0; ulimit -c",
        uid=NOBODY,
    )
    place.wait_for_end(job)

    lines = place.output(job).splitlines()

    assert lines[:4] == ["65534", "65534", "0077", "NoNewPrivs:\t1"]
    assert [line.rpartition(": ")[2] for line in lines[4:10]] == ["Permission denied"] * 6
    assert lines[10:] == ["/dev/null", "0"]
    log = place.path(job, "output.log").stat()
    assert (log.st_uid, log.st_mode & 0o777) == (NOBODY, 0o600)


def test_nothing_of_the_agent_is_in_the_jobs_environment(place, monkeypatch):
    monkeypatch.setenv("ESNODE_TOKEN", "secret")
    job = place.bash("env; ls /proc/self/fd", environment={"WANTED": "yes"})
    place.wait_for_end(job)

    text = place.output(job)

    assert "WANTED=yes\n" in text
    assert "secret" not in text
    assert f"ESNODE_JOB_ID={job.id}\n" in text
    assert text.split("\n")[-5:] == ["0", "1", "2", "3", ""]


@pytest.mark.parametrize(
    ("command", "more", "line"),
    [
        pytest.param(("/no/such",), {}, "/no/such: No such file or directory", id="no such file"),
        pytest.param(("nothing-here",), {}, "nothing-here: No such file", id="not in the path"),
        pytest.param(("/etc/passwd",), {}, "/etc/passwd: Permission denied", id="no program"),
        pytest.param(("true",), {"workdir": "/no/where"}, "/no/where: No such", id="no workdir"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_line(place, command, more, line):
    with pytest.raises(StartRefused, match=f"^{line}"):
        place.start(*command, **more)


def test_odd_bytes_reach_the_program_as_they_are(place):
    odd = "a b\n\udcff\u00e9$HOME'\""
    job = place.start("printf", "%s", odd)
    place.wait_for_end(job)

    assert place.path(job, "output.log").read_bytes() == odd.encode(errors="surrogateescape")


def test_a_supervisor_is_small_and_sleeps(place):
    job = place.bash("sleep 600")
    place.wait_for_phase(job, "running")
    supervisor = place.supervisor_pid(job)
    time.sleep(0.5)
    used_before = cpu_seconds(supervisor)

    time.sleep(5)

    assert cpu_seconds(supervisor) - used_before <= 0.02
    assert memory_kibibytes(supervisor)["Rss"] <= 12 * 1024


def test_more_memory_than_its_limit_ends_a_job_by_the_kernel(place):
    files = ("memory.limit_in_bytes", "memory.max")
    if not any((path / name).exists() for path in place.groups.parents for name in files):
        pytest.skip("no memory controller here")
    job = place.start("python3", "-c", "print(len(b'x' * 300_000_000))", memory="64MiB")

    seen = place.wait_for_end(job)

    assert (seen.exit_signal, seen.end) == (9, "exited")


def test_a_job_that_ends_at_once_does_not_end_who_starts_it(place):
    """Whoever starts a supervisor carries the job's name until it has ended."""
    jobs = [place.start("true") for _ in range(30)]

    assert [place.wait_for_end(job).exit_code for job in jobs] == [0] * 30


def test_twenty_jobs_at_once_each_have_their_end(place):
    jobs = [place.bash(f"sleep 0.5; exit {number}") for number in range(20)]

    ends = [place.wait_for_end(job, seconds=20).exit_code for job in jobs]

    assert ends == list(range(20))


@needs_root
def test_what_another_user_calls_by_a_jobs_name_is_left_alone(open_place):
    place = open_place
    job = place.bash("sleep 600", uid=NOBODY)
    environment = {"ESNODE_JOB_ID": job.id, "ESNODE_JOB_EPOCH": "1"}
    with subprocess.Popen(["sleep", "600"], env=environment, user=NOBODY - 1) as stranger:
        try:
            place.adapter.kill(job)
            place.wait_for_end(job)
            place.wait_for_death(job)

            assert stranger.poll() is None
        finally:
            stranger.kill()


@needs_root
def test_a_full_disk_keeps_the_supervisor_until_the_end_is_kept(tmp_path):
    """In mounts of its own, so that nothing else sees the full disk."""
    folder = tmp_path / "small"
    folder.mkdir()
    script = f"mount -t tmpfs -o size=512k tmpfs {folder}"
    test = [sys.executable, "-m", "tests.job_full_disk", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}

    command = [*private_mounts(script), *test]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=60, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["alive", "7", "exited"]
