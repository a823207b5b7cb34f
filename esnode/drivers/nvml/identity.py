"""Who a device is: what does not change while the driver is loaded.

Its own file because discovery needs it and reading does not. It knows nothing of sessions.
"""

import pynvml

from esnode.drivers.nvml.fields import Fields, UnsupportedFields
from esnode.readings.gpu import GpuIdentity

_ARCHITECTURE_NAMES = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "ada",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "hopper",
    10: "blackwell",  # these two are missing from older bindings
    13: "rubin",
}

PRE_AMPERE = frozenset({"kepler", "maxwell", "pascal", "volta", "turing"})

_GA100_DEVICE_IDS = range(0x2080, 0x2100)
"""PCI device ids of the A100, A800, A30 and their siblings. Source: the PCI ID repository."""

_NOT_AVAILABLE = 0xFFFFFFFF

_NUMA_WORDS = 16
"""64-bit words of the node mask: 1024 nodes, the most that Linux can be built for."""


def read_identity(handle: pynvml.c_nvmlDevice_t, *, uuid: str, index: int) -> GpuIdentity:
    """Ask one device who it is; what it does not say is ``None``.

    Raises:
        DeviceGone: the device or the session is void.
    """
    fields = Fields(handle, UnsupportedFields())
    pci = fields.take("pci", pynvml.nvmlDeviceGetPciInfo_v3, handle)
    return GpuIdentity(
        uuid=uuid,
        index=index,
        name=fields.take("name", pynvml.nvmlDeviceGetName, handle) or "unknown NVIDIA GPU",
        vendor="nvidia",
        pci_bus_id=None if pci is None else pci.busId.lower() or None,
        serial=_take_serial(fields),
        vbios_version=fields.take("vbios_version", pynvml.nvmlDeviceGetVbiosVersion, handle),
        architecture=_take_architecture(fields),
        minor_number=fields.take("minor_number", pynvml.nvmlDeviceGetMinorNumber, handle),
        numa_node=_take_numa_node(fields),
        pci_device_id=None if pci is None else f"0x{pci.pciDeviceId:08x}",
        pci_subsystem_id=None if pci is None else f"0x{pci.pciSubSystemId:08x}",
        board_id=fields.take("board_id", pynvml.nvmlDeviceGetBoardId, handle),
        is_mig_supported=_take_mig_support(fields),
    )


def is_power_usage_averaged(identity: GpuIdentity) -> bool:
    """Whether `nvmlDeviceGetPowerUsage` gives a 1 s average on this part and not the present draw.

    Source: nvml.h, nvmlDeviceGetPowerUsage: averaged on Ampere (except GA100) and newer. A driver
    too old to name the architecture serves nothing newer than Turing.
    """
    if identity.architecture is None or identity.architecture in PRE_AMPERE:
        return False
    if identity.pci_device_id is None:
        return True
    # The upper half is the device, the lower half the vendor.
    return (int(identity.pci_device_id, 16) >> 16) not in _GA100_DEVICE_IDS


def _take_serial(fields: Fields) -> str | None:
    serial = fields.take("serial", pynvml.nvmlDeviceGetSerial, fields.handle)
    # Boards without a serial number say "0" or nothing.
    return serial if serial is not None and serial.strip("0 ") else None


def _take_architecture(fields: Fields) -> str | None:
    number = fields.take("architecture", pynvml.nvmlDeviceGetArchitecture, fields.handle)
    if number is None or number == _NOT_AVAILABLE:
        return None
    return _ARCHITECTURE_NAMES.get(number, f"architecture {number}")


def _take_numa_node(fields: Fields) -> int | None:
    """Name the node nearest to the device, if it is one only.

    Not nvmlDeviceGetNumaNodeId: that is the node that a device's own memory makes up, on machines
    whose GPU memory is coherent with the CPU's.
    """
    words = fields.take(
        "numa_node",
        pynvml.nvmlDeviceGetMemoryAffinity,
        fields.handle,
        _NUMA_WORDS,
        pynvml.NVML_AFFINITY_SCOPE_NODE,
    )
    nodes = [
        64 * position + bit
        for position, word in enumerate(words or ())
        for bit in range(64)
        if word >> bit & 1
    ]
    return nodes[0] if len(nodes) == 1 else None


def _take_mig_support(fields: Fields) -> bool | None:
    mode = fields.take("mig", pynvml.nvmlDeviceGetMigMode, fields.handle)
    if mode is not None:
        return True
    refusal = fields.absent[-1].reason
    return False if "NOT_SUPPORTED" in refusal else None
