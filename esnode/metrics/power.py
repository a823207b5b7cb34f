"""Families of the node's power and energy, and of the work done with it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from esnode.metrics.model import Sample, Value, View, each, families, one
from esnode.readings.app import AppReading
from esnode.readings.power import DcmiPowerReading
from esnode.snapshot import Snapshot

_BASIC = frozenset({
    "node_power_watts", "node_energy_joules_total", "app_tokens_total", "ai_tokens_per_joule",
})  # fmt: skip


def _node(snapshot: Snapshot) -> Iterator[Sample]:
    if snapshot.power.node is not None:
        yield (snapshot.power.node.source,), snapshot.power.node.power_watts


def _zones(attribute: str) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for zone in snapshot.power.zones:
            socket = "" if zone.socket is None else str(zone.socket)
            yield (socket, zone.zone, zone.path), getattr(zone, attribute)

    return each(expand)


def _hwmon(snapshot: Snapshot) -> Iterator[Sample]:
    for sensor in snapshot.power_reading.sensors if snapshot.power_reading else ():
        yield (sensor.chip, sensor.sensor, sensor.label), sensor.power_watts


def _dcmi(get: Callable[[DcmiPowerReading], Value]) -> Callable[[View], Iterable[Sample]]:
    return one(lambda s: get(s.ipmi.dcmi) if s.ipmi and s.ipmi.dcmi else None)


def _bmc_power(snapshot: Snapshot) -> Iterator[Sample]:
    for sensor in snapshot.ipmi.power_sensors if snapshot.ipmi else ():
        yield (sensor.sensor,), sensor.power_watts


def _bmc(attribute: str) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for sensor in snapshot.ipmi.sensors if snapshot.ipmi else ():
            yield (sensor.sensor,), getattr(sensor, attribute)

    return each(expand)


def _cost(snapshot: Snapshot) -> Iterator[Sample]:
    yield (snapshot.power.energy_cost_currency,), snapshot.power.energy_cost_total


def _token_cost(snapshot: Snapshot) -> Iterator[Sample]:
    yield (snapshot.power.energy_cost_currency,), snapshot.app.cost_per_million_tokens


def _tokens(snapshot: Snapshot) -> Iterator[Sample]:
    for endpoint in snapshot.app.endpoints:
        for count in endpoint.tokens:
            yield (endpoint.endpoint, count.model, count.kind), count.tokens_total


def _endpoint(get: Callable[[AppReading], Value]) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for endpoint in snapshot.app.endpoints:
            yield (endpoint.endpoint, endpoint.engine), get(endpoint)

    return each(expand)


_family = partial(families, basic=_BASIC)

POWER = (
    *_family("power", ("source",), ("node_power_watts", "gauge", "Draw of the whole machine, by the best meter that answers (dcmi, psu, hwmon, simulated), else by a model.", each(_node))),
    *_family(
        "power", (),
        ("node_power_estimated", "gauge", "1 when esnode_node_power_watts is the model and no meter.", one(lambda s: s.power.node.is_estimated if s.power.node else None)),
        ("node_power_age_seconds", "gauge", "Age of the node's power reading.", one(lambda s: s.power.node.age_seconds if s.power.node else None)),
        ("node_energy_joules_total", "counter", "Integral of the node's power since the agent started.", one(lambda s: s.power.node_energy_joules_total)),
        ("node_power_envelope_watts", "gauge", "Configured power that the node should not exceed.", one(lambda s: s.power.envelope_watts)),
        ("node_power_envelope_exceeded", "gauge", "1 while the node draws more than its envelope.", one(lambda s: s.power.is_envelope_exceeded)),
        ("carbon_grams_total", "counter", "Carbon emitted for the node's energy, with a configured intensity.", one(lambda s: s.power.carbon_grams_total)),
    ),
    *_family("power", ("currency",), ("energy_cost_total", "counter", "Cost of the node's energy, with a configured tariff.", each(_cost))),
    *_family(
        "power", ("socket", "zone", "path"),
        ("cpu_rapl_power_watts", "gauge", "Draw of a RAPL zone over the last interval. Zones contain each other: do not sum all.", _zones("power_watts")),
        ("cpu_rapl_energy_joules_total", "counter", "Energy of a RAPL zone since the agent started, wraps undone.", _zones("energy_joules_total")),
    ),
    *_family("power", ("chip", "sensor", "label"), ("hwmon_power_watts", "gauge", "Power sensors of hwmon chips.", each(_hwmon))),
    *_family(
        "ipmi", (),
        ("dcmi_power_watts", "gauge", "Chassis draw by DCMI.", _dcmi(lambda d: d.power_watts)),
        ("dcmi_power_average_watts", "gauge", "Average over the controller's own period.", _dcmi(lambda d: d.average_watts)),
        ("dcmi_power_min_watts", "gauge", "Minimum over the controller's own period.", _dcmi(lambda d: d.minimum_watts)),
        ("dcmi_power_max_watts", "gauge", "Maximum over the controller's own period.", _dcmi(lambda d: d.maximum_watts)),
    ),
    *_family(
        "ipmi", ("sensor",),
        ("bmc_power_watts", "gauge", "Power sensors of the baseboard controller.", each(_bmc_power)),
        ("bmc_temperature_celsius", "gauge", "Temperatures of the baseboard controller.", _bmc("temperature_celsius")),
        ("bmc_fan_speed_rpm", "gauge", "Fans of the baseboard controller.", _bmc("fan_speed_rpm")),
    ),
)  # fmt: skip

APP = (
    *_family("app", ("endpoint", "model", "kind"), ("app_tokens_total", "counter", "Tokens by model and kind (prompt, generation), as the server counts them.", each(_tokens))),
    *_family(
        "app", ("endpoint", "engine"),
        ("app_requests_running", "gauge", "Requests in execution.", _endpoint(lambda e: e.requests_running)),
        ("app_requests_waiting", "gauge", "Requests in the queue.", _endpoint(lambda e: e.requests_waiting)),
    ),
    *_family(
        "app", (),
        ("app_tokens_per_second", "gauge", "Tokens a second over the last minute, all endpoints.", one(lambda s: s.app.tokens_per_second)),
        ("ai_tokens_per_joule", "gauge", "Tokens per joule of the node over the last minute.", one(lambda s: s.app.tokens_per_joule)),
        ("ai_tokens_per_watt", "gauge", "Tokens a second per watt over the last minute: the same number as tokens per joule.", one(lambda s: s.app.tokens_per_joule)),
        ("ai_carbon_grams_per_token", "gauge", "Carbon per token over the last minute, with a configured intensity.", one(lambda s: s.app.carbon_grams_per_token)),
    ),
    *_family("app", ("currency",), ("ai_cost_per_million_tokens", "gauge", "Energy cost of a million tokens over the last minute, with a configured tariff.", each(_token_cost))),
)  # fmt: skip
