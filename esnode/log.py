"""How the agent logs: structlog to standard error, one event a line, text or JSON.

The servers' own loggers are sent through it as well. No secret is ever an argument of an event. A
log that cannot be written costs its lines and nothing else: see `LossyStream`.
"""

import errno
import functools
import logging
import os
import select
import sys
from typing import TextIO

import structlog

_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class LossyStream:
    """A stream that takes text if it can at once, and loses it otherwise.

    Whoever reads it may hang, its disk may be full, it may be closed: an agent goes on regardless.
    """

    ATOMIC_BYTES = 4096
    """What a pipe that is ready takes without blocking: PIPE_BUF."""

    def __init__(self, file: TextIO | None) -> None:
        """Wrap a standard stream; ``None`` is one that was closed before Python began."""
        self._file = file
        try:
            self._handle = None if file is None else file.fileno()
        except OSError:  # a stream without a file, in tests
            self._handle = None
        self._is_torn = False
        self.is_gone = False
        """Whether it was a terminal that has been closed."""
        self.lost = 0
        """Texts lost since the last one that got through."""

    def write(self, text: str) -> None:
        """Write all of a text, or count it as lost."""
        try:
            is_written = self._write(text)
        except (OSError, ValueError) as error:  # ValueError: it was closed since
            is_written = False
            self.is_gone = isinstance(error, OSError) and error.errno == errno.EIO
        self.lost = 0 if is_written else self.lost + 1

    def flush(self) -> None:
        """Nothing is kept back."""

    def _write(self, text: str) -> bool:
        if self._handle is None:
            if self._file is not None:
                self._file.write(text)
            return self._file is not None
        rest = b"\n" * self._is_torn + text.encode("utf-8", "backslashreplace")
        ready = select.poll()
        ready.register(self._handle, select.POLLOUT)
        while rest:
            if not ready.poll(0):
                return False
            written = os.write(self._handle, rest[: self.ATOMIC_BYTES])
            rest = rest[written:]
            self._is_torn = bool(rest)
        return True


@functools.lru_cache(maxsize=1)
def _stream_over(file: TextIO | None) -> LossyStream:
    """One stream however often the level changes: structlog keeps a lock for each."""
    return LossyStream(file)


class _Forward(logging.Handler):
    """Hands records of the standard library's loggers to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def configure(level: str, *, is_json: bool) -> None:
    """Set up logging for the whole process; may be called again when the level changes."""
    stream = _stream_over(sys.stderr)

    def tell_of_lost_lines(
        _: object, __: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        if stream.lost:
            event["lines_lost_before"] = stream.lost
        return event

    renderer: structlog.typing.Processor
    if is_json:
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr is not None and sys.stderr.isatty(),
            pad_event_to=0,
            sort_keys=False,
            # Without the local variables that the formatter otherwise shows where rich is there.
            exception_formatter=structlog.dev.plain_traceback,
        )
    structlog.configure(
        processors=[
            tell_of_lost_lines,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.format_exc_info] if is_json else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(stream),  # type: ignore[arg-type]  # enough of one
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_Forward()]
    root.setLevel(max(_LEVELS[level], logging.WARNING))
