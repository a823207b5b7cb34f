"""The files of an audit: numbered, the highest is written, the oldest go.

Its own file because the journal that writes and the commands that read have to agree on it. It must
not know lines.
"""

import re
from pathlib import Path

FOLDER = "control"
"""In the state folder."""
_NAME = re.compile(r"audit-([0-9]{6,})\.jsonl")


def file_of(folder: Path, number: int) -> Path:
    """The path of one file."""
    return folder / f"audit-{number:06}.jsonl"


def files_in(folder: Path) -> list[tuple[int, Path]]:
    """All files, the oldest first; none where the folder is not there.

    Raises:
        OSError: the folder is there and cannot be read.
    """
    try:
        found = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    return sorted((int(match[1]), path) for match, path in found if match is not None)
