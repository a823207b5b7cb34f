"""The one exception that the modules of this package tell each other of.

Its own file because `driver` must know it without importing `pynvml`.
"""


class DeviceGone(Exception):
    """A call found the device, or the whole session, void. Never leaves this package."""

    def __init__(self, line: str, *, is_session_void: bool) -> None:
        super().__init__(line)
        self.line = line
        self.is_session_void = is_session_void
