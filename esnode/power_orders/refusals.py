"""Why an order is not given: one line for each reason.

Its own file because every order can be refused. It must not know who is told.
"""

from collections.abc import Sequence


class CannotOrder(Exception):
    """The order makes no sense, or would not be obeyed; one line for each reason."""

    def __init__(self, *lines: str, is_usage: bool = False) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines
        self.is_usage = is_usage
        """Whether it was typed or written wrongly, and not refused for how the rack is."""


def check_none(lines: Sequence[str], *, is_usage: bool = False) -> None:
    """Refuse with all of these reasons, if there is one.

    Raises:
        CannotOrder: there is.
    """
    if lines:
        raise CannotOrder(*lines, is_usage=is_usage)
