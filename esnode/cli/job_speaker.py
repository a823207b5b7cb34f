"""What the job commands share: the agent's documents, and which job a word means.

Its own file because people name jobs by few letters. It must not know what is done with them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esnode.cli.context import EXIT_DEGRADED, EXIT_UNREACHABLE, EXIT_USAGE, fail

if TYPE_CHECKING:
    from esnode.client import Door

JOB_SCHEMA = "esnode.job/"
JOBS_SCHEMA = "esnode.jobs/"
PATH = "/v1/jobs"
LIVE_STATES = ("starting", "running", "restarting", "draining", "saving", "stopping")

LETTERS_MIN = 3
"""Of an id."""
_OVER = ("ended", "gone", "declined")
_MEANINGS: tuple[Callable[[dict[str, Any], str, str], bool], ...] = (
    lambda one, _, wanted: one["id"] == wanted,
    lambda one, word, _: one["name"] == word and one["phase"] not in _OVER,
    lambda one, word, _: one["name"] == word,
    lambda one, _, wanted: len(wanted) >= LETTERS_MIN and one["id"].endswith(wanted),
    lambda one, _, wanted: len(wanted) >= LETTERS_MIN and one["id"].startswith(wanted),
)
"""What a word may mean, the surest first."""


def fetch_jobs(door: "Door") -> dict[str, Any]:
    """All jobs of the agent's node."""
    from esnode.client import AgentRefused, ask

    try:
        return ask(door, PATH, schema=JOBS_SCHEMA)
    except AgentRefused as error:
        if error.status == 404 and not error.code:
            fail(
                f"the agent at {door.shown} is of a version that runs no jobs: update it",
                code=EXIT_UNREACHABLE,
            )
        raise


def find_job(door: "Door", word: str) -> str:
    """The id of the job that a word means; ends where it means none, or several."""
    wanted = word.lower()
    jobs = fetch_jobs(door)["jobs"]
    found: list[str] = []
    for is_it in _MEANINGS:
        found = [str(one["id"]) for one in jobs if is_it(one, word, wanted)]
        if found:
            break
    if not found:
        lost = f"no job {word!r} on this node; `esnode job list --all` shows all"
        fail(lost, code=EXIT_DEGRADED)
    if len(found) > 1:
        shown = ", ".join(found[:5])
        fail(f"{word!r} names {len(found)} jobs: {shown}; give more of the id", code=EXIT_USAGE)
    return found[0]


def fetch_job(door: "Door", job_id: str) -> dict[str, Any]:
    """One job with everything."""
    from esnode.client import ask

    return ask(door, f"{PATH}/{job_id}", schema=JOB_SCHEMA)
