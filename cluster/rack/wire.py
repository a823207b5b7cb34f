"""Node and rack states to bytes and back.

Its own file because the bytes outlive a version: fields are only appended, what is missing has its
default, what follows is passed over, so agents of two versions understand each other. Documents
hold whole numbers only: measured values are sent in tenths, ratios in thousandths. It must not know
who sends them.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from cluster.codec import Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import parse_rack
from cluster.rack.ledger.decrees import read_currency
from cluster.rack.ledger.row_wire import decode_row, encode_row
from cluster.rack.model import (
    FLAGS_MAX,
    GPUS_MAX,
    TEXT_CHARACTERS_MAX,
    GpuDigest,
    NodeState,
    RackState,
    Total,
)
from cluster.rack.rows import Row
from cluster.rack.units import CurrencyId

_FORMAT = 1
_TENTHS = 10
_THOUSANDTHS = 1000
_NUMBER_MAX = 2**53
_COUNTS_MAX = 16
_ROWS_MAX = 8
_Value = TypeVar("_Value")


def encode_node_state(state: NodeState) -> bytes:
    """At most 1000 bytes for 16 GPUs, and what the rows of rack power take."""
    fields: tuple[Value, ...] = (
        _FORMAT,
        _cut(state.agent_version),
        _scale(state.power_draw_watts, _TENTHS),
        _cut(state.power_draw_source),
        state.is_power_draw_estimated,
        _scale(state.power_draw_age_seconds, _TENTHS),
        _scale(state.power_cap_watts, _TENTHS),
        _scale(state.gpu_draw_watts, _TENTHS),
        _scale(state.gpu_cap_watts, _TENTHS),
        _scale(state.gpu_limit_watts, _TENTHS),
        state.gpu_count,
        state.gpu_healthy_count,
        state.gpu_busy_count,
        tuple(_encode_gpu(gpu) for gpu in state.gpus[:GPUS_MAX]),
        _scale(state.cpu_utilization_ratio, _THOUSANDTHS),
        _scale(state.memory_used_ratio, _THOUSANDTHS),
        _scale(state.temperature_max_celsius, _TENTHS),
        state.jobs_running_count,
        state.degradation_score,
        tuple(_cut(flag) for flag in state.flags[:FLAGS_MAX]),
        _scale(state.loop_lag_seconds, _THOUSANDTHS),
    )
    rows = tuple(
        (currency, encode_document(encode_row(row)))
        for currency, row in state.power_rows[:_ROWS_MAX]
    )
    bounds = (
        _scale(state.power_lowest_watts, _TENTHS),
        _scale(state.power_highest_watts, _TENTHS),
    )
    if bounds != (None, None):
        return encode_document((*fields, rows, *bounds))
    return encode_document((*fields, rows) if rows else fields)


def decode_node_state(data: bytes) -> NodeState:
    """How a node says that it is.

    Raises:
        Malformed: it is no state that this version reads.
    """
    fields = _Fields(_document(data), start=1)
    return NodeState(
        agent_version=fields.text(),
        power_draw_watts=fields.scaled(_TENTHS),
        power_draw_source=fields.text(),
        is_power_draw_estimated=fields.truth(),
        power_draw_age_seconds=fields.scaled(_TENTHS),
        power_cap_watts=fields.scaled(_TENTHS),
        gpu_draw_watts=fields.scaled(_TENTHS),
        gpu_cap_watts=fields.scaled(_TENTHS),
        gpu_limit_watts=fields.scaled(_TENTHS),
        gpu_count=fields.count(),
        gpu_healthy_count=fields.count(),
        gpu_busy_count=fields.count(),
        gpus=fields.array(_decode_gpu, GPUS_MAX),
        cpu_utilization_ratio=fields.scaled(_THOUSANDTHS),
        memory_used_ratio=fields.scaled(_THOUSANDTHS),
        temperature_max_celsius=fields.scaled(_TENTHS),
        jobs_running_count=fields.count(),
        degradation_score=fields.count(),
        flags=fields.array(_read_text, FLAGS_MAX),
        loop_lag_seconds=fields.scaled(_THOUSANDTHS),
        power_rows=_decode_rows(fields.next()),
        power_lowest_watts=fields.scaled_or_none(_TENTHS),
        power_highest_watts=fields.scaled_or_none(_TENTHS),
    )


def encode_rack_state(state: RackState) -> bytes:
    """About 150 bytes."""
    return encode_document(
        (
            _FORMAT,
            state.rack,
            state.counts,
            _encode_total(state.power_draw_watts),
            _encode_total(state.power_cap_watts),
            _scale(state.power_budget_watts, _TENTHS),
            state.gpu_count,
            state.gpu_healthy_count,
            state.gpu_busy_count,
            _scale(state.temperature_max_celsius, _TENTHS),
            tuple((_cut(version), count) for version, count in state.versions[:_COUNTS_MAX]),
        )
    )


def decode_rack_state(data: bytes) -> RackState:
    """How a rack's speaker says that it is.

    Raises:
        Malformed: it is no state that this version reads.
    """
    fields = _Fields(_document(data), start=1)
    return RackState(
        rack=parse_rack(fields.text()),
        counts=fields.array(_read_count, _COUNTS_MAX),
        power_draw_watts=_decode_total(fields.next()),
        power_cap_watts=_decode_total(fields.next()),
        power_budget_watts=fields.scaled(_TENTHS),
        gpu_count=fields.count(),
        gpu_healthy_count=fields.count(),
        gpu_busy_count=fields.count(),
        temperature_max_celsius=fields.scaled(_TENTHS),
        versions=fields.array(_read_count, _COUNTS_MAX),
    )


class _Fields:
    """The fields of an array one after the other; None for what an earlier version did not send."""

    def __init__(self, fields: Sequence[Value], start: int = 0) -> None:
        self._fields = fields
        self._at = start

    def next(self) -> Value:
        self._at += 1
        return self._fields[self._at - 1] if self._at <= len(self._fields) else None

    def scaled(self, scale: int) -> float | None:
        value = _read_number(self.next())
        return None if value is None else value / scale

    def scaled_or_none(self, scale: int) -> float | None:
        """One that cannot be read is left out, since the rest of the state stands."""
        try:
            return self.scaled(scale)
        except Malformed:
            return None

    def count(self) -> int | None:
        value = _read_number(self.next())
        if value is not None and value < 0:
            raise Malformed("a state that counts below nothing")
        return value

    def text(self) -> str:
        value = self.next()
        return "" if value is None else _read_text(value)

    def truth(self) -> bool:
        return self.next() is True

    def maybe(self) -> bool | None:
        value = self.next()
        return value if isinstance(value, bool) else None

    def array(self, read: Callable[[Value], _Value], count_max: int) -> tuple[_Value, ...]:
        value = self.next()
        if value is None:
            return ()
        if not isinstance(value, tuple) or len(value) > count_max:
            raise Malformed("a state with an array that is too long, or none")
        return tuple(read(one) for one in value)


def _encode_gpu(gpu: GpuDigest) -> Value:
    return (
        gpu.index,
        gpu.is_up,
        _scale(gpu.power_draw_watts, _TENTHS),
        _scale(gpu.power_cap_watts, _TENTHS),
        _scale(gpu.utilization_ratio, _THOUSANDTHS),
        _scale(gpu.memory_used_ratio, _THOUSANDTHS),
        _scale(gpu.temperature_celsius, _TENTHS),
        gpu.is_throttled,
    )


def _decode_gpu(value: Value) -> GpuDigest:
    if not isinstance(value, tuple):
        raise Malformed("a state with a GPU that is none")
    fields = _Fields(value)
    return GpuDigest(
        index=fields.count() or 0,
        is_up=fields.truth(),
        power_draw_watts=fields.scaled(_TENTHS),
        power_cap_watts=fields.scaled(_TENTHS),
        utilization_ratio=fields.scaled(_THOUSANDTHS),
        memory_used_ratio=fields.scaled(_THOUSANDTHS),
        temperature_celsius=fields.scaled(_TENTHS),
        is_throttled=fields.maybe(),
    )


def _decode_rows(value: Value) -> tuple[tuple[CurrencyId, Row], ...]:
    """Rows that can be read; one that cannot is left out, since the rest of the state stands."""
    rows: list[tuple[CurrencyId, Row]] = []
    for one in value[:_ROWS_MAX] if isinstance(value, tuple) else ():
        match one:
            case (str() as currency, bytes() as row):
                with contextlib.suppress(Malformed):
                    rows.append((read_currency(currency), decode_row(decode_document(row))))
            case _:
                continue
    return tuple(rows)


def _encode_total(total: Total) -> Value:
    return (
        _scale(total.value, _TENTHS),
        total.known_count,
        total.is_estimated,
        _scale(total.age_seconds, _TENTHS),
    )


def _decode_total(value: Value) -> Total:
    if value is None:
        return Total()
    if not isinstance(value, tuple):
        raise Malformed("a state with a sum that is none")
    fields = _Fields(value)
    return Total(
        value=fields.scaled(_TENTHS),
        known_count=fields.count() or 0,
        is_estimated=fields.truth(),
        age_seconds=fields.scaled(_TENTHS),
    )


def _document(data: bytes) -> Sequence[Value]:
    document = decode_document(data)
    if not document or document[0] != _FORMAT:
        raise Malformed("a state of a format that this version does not read")
    return document


def _scale(value: float | None, scale: int) -> int | None:
    if value is None or not math.isfinite(value):
        return None
    return max(-_NUMBER_MAX, min(_NUMBER_MAX, round(value * scale)))


def _cut(text: str) -> str:
    return text[:TEXT_CHARACTERS_MAX]


def _read_number(value: Value) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _NUMBER_MAX:
        raise Malformed("a state with a number that is none")
    return value


def _read_text(value: Value) -> str:
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX or not value.isprintable():
        raise Malformed("a state with a text that is none")
    return value


def _read_count(value: Value) -> tuple[str, int]:
    match value:
        case (str() as name, int() as count) if count >= 0 and not isinstance(count, bool):
            return _read_text(name), count
        case _:
            raise Malformed("a state with a count that is none")
