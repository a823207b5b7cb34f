"""The chain: each line carries the SHA-256 of the line before it, and its own number.

Pure. Its own file because whoever checks an audit, in whatever language, has to do exactly this.
The hash is of the bytes of the line as it lies in the file, without its end. The first line of all
carries zeros. What was changed, taken out or put in breaks the next line's hash. That the *last*
lines were taken away shows only to somebody who has noted the hash of the end elsewhere: `verify`
prints it. It must not know what a line says.
"""

import hashlib
import json
from collections.abc import Mapping

FIRST = "0" * 64
NAMES = ("number", "previous")


def hash_of(line: bytes) -> str:
    """What the next line has to carry."""
    return hashlib.sha256(line).hexdigest()


def make_line(fields: Mapping[str, object], *, number: int, previous: str) -> bytes:
    """One line, without its end."""
    whole = {"number": number, **fields, "previous": previous}
    return json.dumps(whole, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()


def read_line(line: bytes) -> dict[str, object] | None:
    """What a line says; None where it is none of ours."""
    try:
        whole = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or not isinstance(whole.get("previous"), str):
        return None
    number = whole.get("number")
    return whole if isinstance(number, int) and not isinstance(number, bool) else None


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a file without their ends: only a newline is one, or a change could hide."""
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]
