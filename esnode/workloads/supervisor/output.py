"""What a job writes, on disk. Its own file because a full disk must not end or block the job."""

import os
from typing import Any


class Output:
    """What the job writes, in files of limited size. A disk that refuses loses it, counted."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.size_max = int(launch["logs"]["bytes_max"])
        self.files = int(launch["logs"]["files"])
        self.owner = (launch["uid"], launch["gid"])
        self.written_total = 0
        self.lost_total = 0
        self.trouble = ""
        """Why output was lost the last time, in one line."""
        self.file = -1
        self.size = 0

    def write(self, data: bytes) -> None:
        """Add what was written."""
        view = memoryview(data)
        while view:
            try:
                if self.file < 0 or self.size >= self.size_max:
                    self._turn()
                count = os.write(self.file, view[: max(1, self.size_max - self.size)])
            except OSError as error:
                self.lost_total += len(view)
                self.trouble = f"output was lost: {error.strerror}"
                return
            self.size += count
            self.written_total += count
            view = view[count:]

    def _turn(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
            for number in range(self.files - 1, 0, -1):
                source = "output.log" if number == 1 else f"output.log.{number - 1}"
                if os.path.exists(source):
                    os.replace(source, f"output.log.{number}")
            if self.files == 1:
                os.unlink("output.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self.file = os.open("output.log", flags, 0o600)
        if os.geteuid() == 0:
            os.fchown(self.file, *self.owner)
        self.size = os.fstat(self.file).st_size
