"""The unit is the last word of a number's name."""

import dataclasses
import types
import typing
from collections.abc import Iterator
from types import ModuleType

import pytest

from esnode import diagnose, snapshot
from esnode.fold import power as fold_power
from esnode.readings import app, gpu, host, power, sample

UNITS = (
    "watts", "joules", "microjoules", "celsius", "hertz", "bytes", "seconds", "ratio", "ratios",
    "rpm", "grams", "total", "pages", "count",
)  # fmt: skip
RATES = ("_per_second", "_per_joule", "_per_token", "_per_kilowatt_hour", "_per_million_tokens")

NUMBERS_WITHOUT_A_UNIT = {
    # Loads and states that are numbers by themselves.
    "CpuReading.load1", "CpuReading.load5", "CpuReading.load15", "GpuReading.performance_state",
    "Snapshot.sequence", "HealthState.score",
    # How many of what the name says.
    "CpuReading.processes_running", "CpuReading.processes_blocked",
    "FilesystemReading.inodes_free", "BlockDeviceReading.io_in_progress",
    "NetworkReading.tcp_connections_established", "AppReading.requests_running",
    "AppReading.requests_waiting", "GpuReading.pcie_link_generation",
    "GpuReading.pcie_link_generation_max", "GpuReading.pcie_link_width",
    "GpuReading.pcie_link_width_max",
    # Identities.
    "GpuIdentity.index", "GpuIdentity.minor_number", "GpuIdentity.numa_node",
    "GpuIdentity.board_id", "GpuProcess.pid", "GpuState.index", "NumaNodeReading.node",
    "RaplZoneReading.socket", "RaplZoneState.socket",
}  # fmt: skip

MODULES = (app, gpu, host, power, sample, snapshot, diagnose, fold_power)


def numeric_fields(module: ModuleType) -> Iterator[str]:
    for value in vars(module).values():
        if not (isinstance(value, type) and dataclasses.is_dataclass(value)):
            continue
        if value.__module__ != module.__name__:
            continue
        hints = typing.get_type_hints(value)
        for field in dataclasses.fields(value):
            if is_number(hints[field.name]):
                yield f"{value.__name__}.{field.name}"


def is_number(hint: object) -> bool:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return bool({int, float} & set(options))


def has_unit(name: str) -> bool:
    field = name.partition(".")[2]
    return field.rpartition("_")[2] in UNITS or field.endswith(RATES)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_number_ends_with_its_unit(module: ModuleType) -> None:
    bare = {name for name in numeric_fields(module) if not has_unit(name)}

    assert bare <= NUMBERS_WITHOUT_A_UNIT


def test_the_exceptions_are_still_there() -> None:
    everything = {name for module in MODULES for name in numeric_fields(module)}

    assert everything >= NUMBERS_WITHOUT_A_UNIT
    assert not {name for name in NUMBERS_WITHOUT_A_UNIT if has_unit(name)}
