"""A minute of the soak of rack power: faults from a seed, and a witness who finds nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents import REPOSITORY, clean_environment

pytestmark = [pytest.mark.process, pytest.mark.slow]

WISH = ("--seconds", "45", "--nodes", "6", "--seed", "7", "--faults", "kill,stop,full,torn")
"""An old copy of a ledger takes its node out for good: it has a test of its own."""


def test_a_minute_of_faults_lets_a_rack_draw_too_much_at_no_instant(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.power", *WISH],
        cwd=REPOSITORY,
        env=clean_environment(tmp_path, TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    report = json.loads(done.stdout)

    assert done.returncode == 0, (report, done.stderr)
    assert report["over"] == 0
    assert report["instants"] > 200
    assert sum(report["faults"].values()) >= 5
    assert report["tracebacks"] == 0
    assert list(tmp_path.iterdir()) == []
