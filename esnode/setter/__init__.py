"""The power setter: the one door through which limits reach the hardware.

A handful of verbs, so that the same setter serves a call in this process or, behind a pipe, a
process of its own with the privilege that the agent then does not need.
"""

from esnode.setter.calls import DeviceCalls
from esnode.setter.journal import Journal
from esnode.setter.messages import (
    LimitsRead,
    LimitsSet,
    ListRanges,
    RangesListed,
    ReadLimits,
    Refused,
    Reply,
    Request,
    SetLimits,
)
from esnode.setter.remote import RemoteSetter, SetterGone, serve_setter
from esnode.setter.setter import HardLimit, PowerSetter

__all__ = [
    "DeviceCalls",
    "HardLimit",
    "Journal",
    "LimitsRead",
    "LimitsSet",
    "ListRanges",
    "PowerSetter",
    "RangesListed",
    "ReadLimits",
    "Refused",
    "RemoteSetter",
    "Reply",
    "Request",
    "SetLimits",
    "SetterGone",
    "serve_setter",
]
