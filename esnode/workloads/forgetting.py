"""Which ends of jobs are no longer shown.

Pure. Its own file because an end that is forgotten could be run again by whoever asks with its id
once more: it is kept for longer than anybody does.
"""

from esnode.workloads.book import Book, Phase
from esnode.workloads.records import Forgotten

ENDED_KEPT_MAX = 1000
ENDED_KEPT_SECONDS = 7 * 86_400.0
RECENT_SECONDS = 3600.0
"""However many there are: a submitter that got no answer asks again within minutes."""


def old_ends(book: Book, now_unix_seconds: float) -> tuple[Forgotten, ...]:
    """A record for each, the oldest first."""
    over = sorted(
        ((job.ended_unix_seconds or 0.0, job) for job in book if job.phase is Phase.ENDED),
        key=lambda one: (one[0], one[1].id),
    )
    excess = len(over) - ENDED_KEPT_MAX
    return tuple(
        Forgotten(job=job.id, epoch=job.epoch, at_unix_seconds=now_unix_seconds)
        for number, (ended, job) in enumerate(over)
        if now_unix_seconds - ended > ENDED_KEPT_SECONDS
        or (number < excess and now_unix_seconds - ended > RECENT_SECONDS)
    )
