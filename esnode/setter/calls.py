"""Blocking calls of devices, side by side, none waited for past its deadline.

Its own file because a hung device must not keep the others from being lowered. A call in the kernel
cannot be cancelled, only left behind: its thread stays, and its device gets no second call until it
comes back. It must not know limits. `esnode.worker` does the same for the event loop's collectors;
this one runs without a loop, since the setter may be a process of its own.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from esnode.clock import monotonic_seconds

_Answer = TypeVar("_Answer")


class CallHangs(Exception):
    """A call has not come back; whether it does what it was to do is unknown. One line."""


class _Call(Generic[_Answer]):
    """One call, and what came of it once `done` is set."""

    def __init__(self, function: Callable[[], _Answer]) -> None:
        self._function = function
        self.done = threading.Event()
        self._outcomes: list[_Answer | Exception] = []

    @property
    def outcome(self) -> _Answer | Exception:
        return self._outcomes[0]

    def run(self) -> None:
        try:
            self._outcomes.append(self._function())
        except Exception as error:  # handed to whoever asked, or left behind with the call
            self._outcomes.append(error)
        self.done.set()


class DeviceCalls:
    """At most one call for each name at a time. Safe to use from several threads."""

    def __init__(self, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._gate = threading.Lock()
        self._under_way: dict[str, threading.Event] = {}

    def run(self, calls: Mapping[str, Callable[[], _Answer]]) -> dict[str, _Answer | Exception]:
        """Make one call for each name; what it returned or raised, `CallHangs` for no answer."""
        end = monotonic_seconds() + self._deadline_seconds
        begun: dict[str, _Call[_Answer]] = {}
        with self._gate:
            for name, function in calls.items():
                earlier = self._under_way.get(name)
                if earlier is None or earlier.is_set():
                    begun[name] = _Call(function)
                    self._under_way[name] = begun[name].done
        for call in begun.values():
            _start(call)
        outcomes: dict[str, _Answer | Exception] = {}
        for name in calls:
            if name not in begun:
                outcomes[name] = CallHangs(f"{name}: an earlier call has not come back")
            elif begun[name].done.wait(max(0.0, end - monotonic_seconds())):
                outcomes[name] = begun[name].outcome
            else:
                waited = f"no answer within {self._deadline_seconds:g} s"
                outcomes[name] = CallHangs(f"{name}: {waited}")
        return outcomes


def _start(call: _Call[_Answer]) -> None:
    try:
        threading.Thread(target=call.run, daemon=True).start()
    except RuntimeError:
        # No thread is to be had on a crowded machine: a lowering is made all the same.
        call.run()
