"""What runs have used, kept beside them: an agent that starts anew goes on counting from there.

Its own file because nothing depends on it: a disk that refuses loses seconds of a count, and no
run.
"""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from cluster.identity.files import IdentityUnusable, replace_file
from esnode.workloads.book import Job
from esnode.workloads.ids import JobId
from esnode.workloads.metering import JobMeter

KEEP_SECONDS = 10.0
NAME = "use.json"
"""In a job's folder."""


async def keep_use(
    meter: JobMeter, live: Callable[[], tuple[Job, ...]], folder_of: Callable[[JobId], Path]
) -> None:
    """Keep the use of all runs now and then, until cancelled."""
    while True:
        await trio.sleep(KEEP_SECONDS)
        for job in live():
            kept = meter.kept(job)
            if kept is not None:
                path = folder_of(job.id) / NAME
                await trio.to_thread.run_sync(_write, path, kept, abandon_on_cancel=True)


async def read_use(folder: Path) -> dict[str, Any] | None:
    """What was kept of a run; None where nothing was."""
    return await trio.to_thread.run_sync(_read, folder / NAME, abandon_on_cancel=True)


def _write(path: Path, kept: dict[str, Any]) -> None:
    with contextlib.suppress(IdentityUnusable):
        replace_file(path, json.dumps(kept).encode())


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
