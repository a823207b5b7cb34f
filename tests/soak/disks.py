"""Small disks that can be filled: file systems in files, mounted through loop devices.

Not in memory: a node whose state does not survive a reboot does not trade, and would prove nothing.
"""

import os
import shutil
import subprocess
from pathlib import Path

DISK_BYTES = 16 << 20
PIECES_BYTES = (1 << 20, 4096, 1)
"""What is written to fill one: large pieces first, then what is left between them."""
FILL = "fill"
OPTIONS = ("-q", "-m", "0", "-b", "1024", "-O", "^has_journal")
"""Nothing kept back for root, blocks that are soon full, and no journal to make it slow."""


def why_none(folder: Path) -> str:
    """Why there are no such disks here; empty where there are."""
    if os.geteuid() != 0:
        return "mounting needs root"
    missing = [name for name in ("mkfs.ext4", "unshare", "mount") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)}: no such program"
    image = folder / "probe.img"
    make_image(image)
    at = folder / "probe"
    at.mkdir()
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-o", "loop", image, at],
        capture_output=True,
        text=True,
        check=False,
    )
    image.unlink()
    return "" if tried.returncode == 0 else f"no loop device: {tried.stderr.strip()}"


def make_image(image: Path) -> None:
    """A file with an empty file system in it."""
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", *OPTIONS, image], check=True, capture_output=True)


def mount(image: Path, at: Path) -> None:
    """In the mounts of this process."""
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True, capture_output=True)
    at.chmod(0o700)


def fill(at: Path) -> None:
    """Leave no room for another byte in another block."""
    with (at / FILL).open("wb", buffering=0) as file:
        for piece in PIECES_BYTES:
            try:
                while True:
                    file.write(b"\0" * piece)
            except OSError:
                continue


def free(at: Path) -> None:
    """Make room again."""
    (at / FILL).unlink(missing_ok=True)
