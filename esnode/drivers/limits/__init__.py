"""Devices whose power can be limited, whatever kind they are of."""

from esnode.drivers.limits.base import FoundDevices, LimitDevices
from esnode.drivers.limits.gpu import GpuLimits
from esnode.drivers.limits.rapl import RaplLimits

__all__ = ["FoundDevices", "GpuLimits", "LimitDevices", "RaplLimits"]
