"""A screen that is drawn over and over, for `esnode agent --live` and `esnode demo`."""

import json
import signal
import sys
from collections.abc import Sequence

from esnode.cli.status import render
from esnode.log import LossyStream


class Screen:
    """Draws status documents in place on a terminal; elsewhere only the first complete one."""

    def __init__(self, *, is_colored: bool) -> None:
        self._is_colored = is_colored
        self._is_terminal = sys.stdout.isatty()
        self._is_drawn = False
        self._out = LossyStream(sys.stdout)  # a stopped terminal must not stop the agent

    def show(self, addresses: Sequence[str], status: bytes) -> None:
        """Draw one status document of the agent that listens on `addresses`."""
        document = json.loads(status)
        if not self._is_terminal and document["cpu_util_percent"] is None:
            return  # rates need two rounds; a terminal shows what there is meanwhile
        where = ", ".join(f"{address}/metrics" for address in addresses)
        head = f"esnode agent   {where}   Ctrl-C ends it"
        self.draw(head, render(document, is_colored=self._is_colored))

    def draw(self, head: str, screen: str) -> None:
        """Draw one screen under its head line."""
        if self._is_terminal:
            if not self._is_drawn:
                self._out.write("\x1b[2J")
            # Home, clear to the end of each line and of the screen: no flicker.
            text = f"{head}\n\n{screen}".replace("\n", "\x1b[K\n")
            self._out.write(f"\x1b[H{text}\x1b[K\n\x1b[J")
            if self._out.is_gone:  # its hang-up came as SIGHUP, which means another thing to us
                signal.raise_signal(signal.SIGTERM)
        elif not self._is_drawn:
            self._out.write(f"{head}\n\n{screen}\n\n")
        self._is_drawn = True
