"""How a job is called: a ULID, so that ids sort by the time at which they were made.

Its own file because the submitter makes the id: whoever is asked twice for one id has one job. It
must not know clocks or randomness; both are handed in. Source: the ULID specification (48 bits of
milliseconds, 80 bits of randomness, Crockford's base 32), written in lower case.
"""

import random
import re
from typing import NewType

JobId = NewType("JobId", str)
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_JOB = re.compile(f"[0-7][{_ALPHABET}]{{25}}")


class BadJobId(Exception):
    """A text is no job's id; the text completes "'VALUE' ..."."""


def make_job_id(unix_seconds: float, rng: random.Random) -> JobId:
    """A new id."""
    number = (int(unix_seconds * 1000) & (1 << 48) - 1) << 80 | rng.getrandbits(80)
    letters = [_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)]
    return JobId("".join(letters))


def parse_job_id(text: object) -> JobId:
    """The id that a text is.

    Raises:
        BadJobId: it is none.
    """
    word = text.lower() if isinstance(text, str) else ""
    if not _JOB.fullmatch(word):
        raise BadJobId("is not the id of a job: 26 letters and digits")
    return JobId(word)


def is_job_id(text: str) -> bool:
    """Whether a text is a job's id as we write it."""
    return _JOB.fullmatch(text) is not None
