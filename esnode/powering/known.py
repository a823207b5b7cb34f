"""Rack power as this node knows it, frozen for whoever looks: documents and metrics.

Its own file because it reads everything and changes nothing. It must not know how it is shown.
"""

from cluster.rack.actuator import ActuatorView
from cluster.rack.power_effects import PowerView
from esnode.powering.driver import Powering
from esnode.powering.means import Hardwareless
from esnode.status.power import DeviceFact, PowerKnown


def known_of(powering: Powering) -> PowerKnown:
    """All of it at this instant."""
    means, governed, host = powering.means, powering.governed, powering.host
    now = means.clock()
    view = None if governed is None else governed.power.view(now)
    state, detail = _state(powering, view)
    identity = None if host is None else host.keys.identity
    if identity is None and governed is not None:
        identity = governed.identity
    devices = None if isinstance(powering.hardware, Hardwareless) else powering.hardware.devices
    is_found = devices is not None and bool(devices.parts())
    trouble = means.logs.trouble
    draw = means.wishes.draw
    return PowerKnown(
        state=state,
        detail=detail,
        node="" if identity is None else identity.name,
        rack="" if identity is None else identity.rack,
        node_id=None if identity is None else identity.node_id,
        is_gate_open=means.gate.is_open,
        gate_reason=means.gate.reason,
        floor_watts=None if governed is None else governed.floor_watts,
        lowest_watts=devices.lowest_watts if devices is not None and is_found else None,
        highest_watts=devices.highest_watts if devices is not None and is_found else None,
        settle_seconds=means.terms.settle_seconds,
        draw_watts=draw.watts,
        draw_source=draw.source,
        settle_seen=None if devices is None else devices.settling.seen,
        view=view,
        devices=() if devices is None else _device_facts(powering),
        charters=means.heard.charters,
        rows=means.heard.rows(now),
        mates=means.heard.mates(now),
        alarms=(*means.alarms, *(() if trouble is None else (trouble,))),
        counts=dict(means.counts),
        has_disk_trouble=trouble is not None,
    )


def _state(powering: Powering, view: PowerView | None) -> tuple[str, str]:
    """The node in a word, and a line about it."""
    means = powering.means
    if means.terms.is_observing:
        return "observing", powering.static_reason
    if powering.static_reason:
        return "static", powering.static_reason
    if powering.trouble:
        return "unavailable", powering.trouble
    if view is None:
        if powering.host is None and means.gate.is_governed:
            return "starting", "its part of the cluster does not run; the last cap stays"
        if powering.host is None:
            return "ungoverned", "this node is in no cluster that runs"
        return "ungoverned", "no operator has decreed a budget for this rack"
    for ledger in view.ledgers:
        if ledger.quarantine:
            return "quarantined", ledger.quarantine
    if view.is_parked:
        if _stands_static(powering):
            return "static", "its slot is counted at its maximum by the operators' record"
        return "parked", view.reason
    is_begun = [ledger.epoch is not None and ledger.complied.sequence for ledger in view.ledgers]
    if not (is_begun and all(is_begun)):
        return "starting", "its cap is not set and settled yet"
    governed, hardware = powering.governed, powering.hardware
    if governed is not None and not isinstance(hardware, Hardwareless):
        lowest = hardware.devices.lowest_watts
        why = parked_reason(view.actuator, floor_watts=governed.floor_watts, lowest_watts=lowest)
        if why:
            return "parked", f"{why}: {view.reason}"
    if powering.host is None:
        return "enforcing", "its part of the cluster does not run: its cap is what its books say"
    return "enforcing", view.reason


def parked_reason(actuator: ActuatorView, *, floor_watts: int, lowest_watts: int) -> str:
    """Why no work can run under the cap that should be in force; empty where some can.

    A node that idles at its floor is not parked: its machine can be held there.
    """
    if actuator.wanted_watts is None:
        return ""
    cap_watts = floor_watts + actuator.wanted_watts
    if cap_watts >= lowest_watts:
        return ""
    return f"its cap of {cap_watts} W is below {lowest_watts} W, the lowest that its machine keeps"


def _stands_static(powering: Powering) -> bool:
    """Whether operators have given this node a slot that never trades."""
    host = powering.host
    own = None if host is None else host.keys.identity.node_id
    return any(
        slot.is_static and slot.node_id == own
        for charter in powering.means.heard.charters.values()
        for slot in charter.slots
    )


def _device_facts(powering: Powering) -> tuple[DeviceFact, ...]:
    assert not isinstance(powering.hardware, Hardwareless)
    return tuple(
        DeviceFact(
            range=one.range,
            limit_watts=one.enforced_watts,
            draw_watts=one.draw_watts,
            set_by=one.set_by,
            is_given_up=one.is_given_up,
            is_refusing=one.is_refusing,
            refusal=one.refusal,
        )
        for one in powering.hardware.devices.views()
    )
