"""Run by a test among mounts of its own: a job ends while the disk takes no more."""

import sys
from pathlib import Path

from tests.job_processes import bench, is_alive, pause


def main(folder: Path) -> None:
    with bench(folder / "jobs", "none") as place:
        job = place.bash("while [ ! -e go ]; do sleep 0.05; done; exit 7")
        supervisor = place.supervisor_pid(job)
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"x" * 4096)
                except OSError:
                    break
        (folder / "jobs" / job.id / "work" / "go").symlink_to("anything")
        place.path(job, "work/anything").touch()
        pause(2.5)
        assert not place.look(job).is_ended, "its end cannot be on disk"
        print("alive" if is_alive(supervisor) else "gone")
        place.adapter.kill(job)  # leaves it, as it only waits for the disk
        filler.unlink()
        seen = place.wait_for_end(job)
        print(seen.exit_code, seen.end)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
