"""Takes one value at a time from NVML, so that a value that fails takes no other with it.

Its own file because it is the one place that turns a return code into an `Absence`. It knows no
particular field; units and sanity limits are with those who ask.
"""

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import pynvml

from esnode.drivers.nvml.faults import UNSUPPORTED_CODES, describe, raise_if_gone
from esnode.readings.host import Absence

REPROBE_READS = 60
"""Reads of a device after which an unsupported value is asked for again.

A device may call a value unsupported for a while only (during a reset, or after days on some
parts), so the answer is kept for five minutes at the default interval and never for ever.
"""

P = ParamSpec("P")
T = TypeVar("T")

FieldId = tuple[int, int]
"""NVML's (field, scope)."""


class UnsupportedFields:
    """What one device lately called unsupported: outlives its reads, dies with the session."""

    def __init__(self) -> None:
        self._reason_of: dict[str, str] = {}
        self._reads_left: dict[str, int] = {}

    def start_read(self) -> None:
        """Count one read, and forget what has been skipped for long enough."""
        for what in list(self._reads_left):
            self._reads_left[what] -= 1
            if self._reads_left[what] <= 0:
                del self._reads_left[what], self._reason_of[what]

    def remember(self, what: str, reason: str) -> None:
        """Skip this value during the next reads."""
        self._reason_of[what] = reason
        self._reads_left[what] = REPROBE_READS

    def reason(self, what: str) -> str | None:
        """Say why the value is being skipped, or ``None`` if it should be asked for."""
        return self._reason_of.get(what)


class Fields:
    """The values of one device during one read, and the list of those that it did not give."""

    def __init__(self, handle: pynvml.c_nvmlDevice_t, unsupported: UnsupportedFields) -> None:
        self.handle = handle
        self.absent: list[Absence] = []
        self._unsupported = unsupported
        unsupported.start_read()

    def take(
        self,
        what: str,
        function: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Call one NVML function; a refusal makes `what` absent and nothing else.

        Raises:
            DeviceGone: the device or the session is void, so no further call makes sense.
        """
        skipped = self._unsupported.reason(what)
        if skipped is not None:
            self.leave_out(what, skipped)
            return None
        name = getattr(function, "__name__", "NVML")
        try:
            return function(*args, **kwargs)
        except pynvml.NVMLError as error:
            self._refuse(what, name, error.value)
        except ValueError as error:
            # Text that is no UTF-8, from a corrupt inforom.
            self.leave_out(what, f"{name}: the answer is unreadable ({error})")
        return None

    def take_field_values(self, wanted: dict[str, FieldId]) -> dict[str, float]:
        """Ask for many field values in one call; those not given become absences.

        Raises:
            DeviceGone: as `take`.
        """
        asked: dict[str, FieldId] = {}
        for what, field in wanted.items():
            skipped = self._unsupported.reason(what)
            if skipped is None:
                asked[what] = field
            else:
                self.leave_out(what, skipped)
        if not asked:
            return {}
        name = "nvmlDeviceGetFieldValues"
        try:
            answers: Sequence[pynvml.c_nvmlFieldValue_t] = pynvml.nvmlDeviceGetFieldValues(
                self.handle, list(asked.values())
            )
        except pynvml.NVMLError as error:
            for what in asked:
                self._refuse(what, name, error.value)
            return {}
        values: dict[str, float] = {}
        for (what, (field_id, _)), answer in zip(asked.items(), answers, strict=True):
            if answer.nvmlReturn != pynvml.NVML_SUCCESS:
                self._refuse(what, f"{name} field {field_id}", answer.nvmlReturn)
                continue
            value = _unwrap(answer)
            if value is None:
                self.leave_out(what, f"{name} field {field_id}: type {answer.valueType} unknown")
            else:
                values[what] = value
        return values

    def leave_out(self, what: str, reason: str) -> None:
        """Say that this value is not given, and why."""
        self.absent.append(Absence(what=what, reason=reason))

    def _refuse(self, what: str, function: str, code: int) -> None:
        raise_if_gone(function, code)
        line = describe(function, code)
        if code in UNSUPPORTED_CODES:
            self._unsupported.remember(what, line)
        self.leave_out(what, line)


_MEMBER_OF_TYPE = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


def _unwrap(answer: pynvml.c_nvmlFieldValue_t) -> float | None:
    """Read the member of the union that the answer's type names."""
    member = _MEMBER_OF_TYPE.get(answer.valueType)
    if member is None:
        return None
    value: float = getattr(answer.value, member)
    return value
