"""GPUs of whatever driver it is given: which of them are watched, and how many processes are kept.

Its own file because those two choices are the operator's, and no driver's. It knows no vendor.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from esnode.collectors.base import CollectFailed, CollectUnavailable, Discovery
from esnode.drivers.base import DeviceFault, DriverUnavailable, GpuDriver
from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuProcess, GpuReading
from esnode.readings.host import Absence

PROCESS_COUNT_MAX = 10
"""Processes kept per device by default: each becomes series, and some nodes run hundreds."""

_ALL = frozenset({"", "all"})
_NONE = frozenset({"none", "void"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The devices that a `visible_devices` names, and its entries that name none."""

    gpus: tuple[GpuIdentity, ...]
    absent: tuple[Absence, ...] = ()


def select_visible(identities: Sequence[GpuIdentity], spec: str | None) -> Selection:
    """Choose devices as NVIDIA's container runtime and CUDA do, in the driver's order.

    `spec` is ``all`` (or nothing), ``none`` (or ``void``), or a comma list of indices, of UUIDs
    and of beginnings of UUIDs that fit one device only. An entry that names no device selects
    none, so a mistake never shows more than was asked for.
    """
    text = (spec or "").strip()
    if text.lower() in _ALL:
        return Selection(gpus=tuple(identities))
    if text.lower() in _NONE:
        # Container runtimes set it so where devices come in by another way (CDI).
        reason = f"{text!r} watches no GPU; set gpu_visible_devices to all to watch every one"
        return Selection(gpus=(), absent=(Absence(what="visible_devices", reason=reason),))
    chosen: set[str] = set()
    absent: list[Absence] = []
    entries = [entry for part in text.split(",") if (entry := part.strip())]
    for entry in entries:
        matches, refusal = _match(identities, entry.lower())
        if refusal is None:
            chosen.update(matches)
        else:
            absent.append(Absence(what=f"visible_devices:{entry}", reason=refusal))
    if not entries:
        absent.append(Absence(what="visible_devices", reason=f"{spec!r} names no device"))
    return Selection(
        gpus=tuple(gpu for gpu in identities if gpu.uuid in chosen), absent=tuple(absent)
    )


def keep_largest(processes: Sequence[GpuProcess], count_max: int) -> tuple[GpuProcess, ...]:
    """Keep the processes that use most memory; those of unknown use come last."""
    by_size = sorted(
        processes,
        key=lambda process: (
            -1 if process.memory_used_bytes is None else process.memory_used_bytes,
            -process.pid,
        ),
        reverse=True,
    )
    return tuple(by_size[:count_max])


class GpuCollector:
    """One worker per device, over any `GpuDriver`."""

    name = "gpu"

    def __init__(
        self,
        driver: GpuDriver,
        *,
        visible_devices: str | None = None,
        process_count_max: int = PROCESS_COUNT_MAX,
    ) -> None:
        self._driver = driver
        self._visible_devices = visible_devices
        self._process_count_max = process_count_max
        self._seen: dict[str, GpuIdentity] = {}

    def discover(self) -> Discovery[GpuInventory, GpuIdentity]:
        """List the devices that are to be watched; the inventory tells of the others.

        Raises:
            CollectFailed: the driver cannot be used now.
        """
        try:
            inventory = self._driver.discover()
        except DriverUnavailable as error:
            kind = CollectUnavailable if error.is_absent else CollectFailed
            raise kind(str(error)) from error
        known = (*inventory.gpus, *self._still_missed(inventory))
        selection = select_visible(known, self._visible_devices)
        present = {gpu.uuid for gpu in inventory.gpus}
        lost = tuple(loss for loss in inventory.lost if self._is_watched(loss))
        left_out = tuple(
            Absence(what=loss.what, reason=f"{loss.reason}; it is not watched")
            for loss in inventory.lost
            if loss not in lost
        )
        return Discovery(
            part=replace(
                inventory,
                gpus=tuple(gpu for gpu in selection.gpus if gpu.uuid in present),
                lost=lost,
                absent=(*inventory.absent, *selection.absent, *left_out),
            ),
            targets={gpu.uuid: gpu for gpu in selection.gpus},
        )

    def _is_watched(self, loss: Absence) -> bool:
        """Whether a device that cannot be opened is one that the operator wants watched.

        One that was never seen is known by its index alone: where devices are chosen by UUID it may
        be any of those that are missing, so it counts.
        """
        seen = self._seen.get(loss.what)
        if seen is not None:
            return bool(select_visible((seen,), self._visible_devices).gpus)
        text = (self._visible_devices or "").strip().lower()
        if text in _ALL or text in _NONE:
            return text in _ALL
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        index = loss.what.removeprefix("gpu:")
        return any(entry == index or not entry.isdigit() for entry in entries)

    def _still_missed(self, inventory: GpuInventory) -> list[GpuIdentity]:
        """Devices seen before that the driver counts and cannot open: still watched, as down."""
        missed = [
            identity
            for absence in inventory.lost
            if (identity := self._seen.get(absence.what)) is not None
        ]
        self._seen |= {f"gpu:{gpu.index}": gpu for gpu in inventory.gpus}
        present = {gpu.uuid for gpu in inventory.gpus}
        return [identity for identity in missed if identity.uuid not in present]

    def read(self, target: GpuIdentity) -> GpuReading:
        """Read one device.

        Raises:
            CollectFailed: it did not answer.
        """
        try:
            reading = self._driver.read(target)
        except (DeviceFault, DriverUnavailable) as error:
            raise CollectFailed(str(error)) from error
        if reading.processes is None:
            return reading
        kept = keep_largest(reading.processes, self._process_count_max)
        left_out = len(reading.processes) - len(kept)
        if not left_out:
            return replace(reading, processes=kept)
        absence = Absence(
            what="processes",
            reason=f"the {len(kept)} with most memory are kept, {left_out} more are not",
        )
        return replace(
            reading,
            processes=kept,
            unlisted_process_count=left_out,
            absent=(*reading.absent, absence),
        )


def _match(identities: Sequence[GpuIdentity], entry: str) -> tuple[list[str], str | None]:
    """Give the UUID that an entry names, or why it names none."""
    if entry.startswith("mig-"):
        return [], "MIG instances are not watched one by one; name the whole GPU"
    if entry.isascii() and entry.isdigit():
        index = entry.lstrip("0") or "0"
        matches = [gpu.uuid for gpu in identities if str(gpu.index) == index]
    else:
        matches = [gpu.uuid for gpu in identities if gpu.uuid.lower() == entry] or [
            gpu.uuid for gpu in identities if gpu.uuid.lower().startswith(entry)
        ]
    if not matches:
        return [], "no GPU that answers has this index or UUID"
    if len(matches) > 1:
        return [], f"fits {len(matches)} GPUs: write more of the UUID"
    return matches, None
