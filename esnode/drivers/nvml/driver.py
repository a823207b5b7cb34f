"""The NVML back end: one session shared by threads, opened late and re-opened when it is void.

Rules:

1. Nothing is imported or opened before the first `discover`, and nothing stays open after
   `release`: an agent without GPU collection must not keep the driver from being unloaded.
2. No lock is held during a device call, because such a call may never return. `_gate` guards
   the counting of calls alone; `_discovery` lets one discovery run at a time.
3. A session is closed only when none of its calls is under way: the last to return closes it.
4. A void session (the driver was reloaded, or somebody shut NVML down) is dropped, never closed:
   a late nvmlShutdown would count against the session that follows.
5. A lost device is looked for with a fresh session at once, and then every `REOPEN_ROUNDS`
   discoveries, as a reset device has a new handle; the others wait for that moment.

It must not know collectors, intervals or metrics, and it reads no clock.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from esnode.drivers.base import DeviceFault, DriverUnavailable, PowerLimitRefused
from esnode.drivers.nvml.gone import DeviceGone
from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuReading
from esnode.readings.limits import EnforcedLimit

if TYPE_CHECKING:
    from esnode.drivers.nvml.session import Session

REOPEN_ROUNDS = 24
"""Discoveries between two fresh sessions while a device stays lost (2 minutes by default).

Opening NVML can take seconds, or hang on a bad device, so it is not done at every discovery.
"""

_CALLS_WAIT_SECONDS = 0.5
"""How long a re-opening waits for calls under way: a healthy read takes some milliseconds."""

_REOPEN_WAIT_SECONDS = 2.0
"""How long a call waits for a re-opening before it gives its device up for this round."""


@dataclass(slots=True, eq=False, kw_only=True)
class _Lease:
    """A session and the number of calls under way in it."""

    session: "Session"
    calls: int = 0
    is_closing: bool = False
    is_void: bool = False


class NvmlDriver:
    """NVIDIA GPUs. Safe to call from one thread per device, and from another for discovery."""

    name = "nvml"

    def __init__(self, *, procfs_path: Path = Path("/proc")) -> None:
        self._procfs_path = procfs_path
        self._discovery = threading.Lock()
        self._gate = threading.Condition()
        self._lease: _Lease | None = None
        self._is_reopening = False
        self._has_lost = False
        self._rounds_to_reopen = 0

    def discover(self) -> GpuInventory:
        """Open NVML if need be and list the devices.

        Raises:
            DriverUnavailable: the driver cannot be used now.
        """
        with self._discovery:
            self._reopen_for_lost()
            try:
                return self._discover_once()
            except DeviceGone:
                # The session had been void for some time without our noticing.
                pass
            try:
                return self._discover_once()
            except DeviceGone as gone:
                raise DriverUnavailable(f"NVML closes as soon as it opens: {gone.line}") from gone

    def read(self, gpu: GpuIdentity) -> GpuReading:
        """Read one device; a value that it does not give is in the reading's `absent`.

        Raises:
            DeviceFault: the device or its handle is void.
            DriverUnavailable: NVML is not open.
        """
        with self._calling(gpu) as session:
            return session.read(gpu, self._read_process_name)

    def read_power_limit(self, gpu: GpuIdentity) -> EnforcedLimit:
        """Read what one device obeys, and what it was asked for, and nothing else.

        Raises:
            DeviceFault: the device or its handle is void.
            DriverUnavailable: NVML is not open.
        """
        with self._calling(gpu) as session:
            return session.read_power_limit(gpu)

    def set_power_limit(self, gpu: GpuIdentity, watts: int) -> None:
        """Ask for a limit of whole watts.

        Raises:
            PowerLimitRefused: the device kept its old limit.
            DeviceFault: what is in force is unknown.
        """
        try:
            with self._calling(gpu) as session:
                session.set_power_limit(gpu, watts)
        except DriverUnavailable as error:
            raise PowerLimitRefused(str(error)) from error

    def release(self) -> None:
        """Close NVML, at once or when the last call under way returns."""
        with self._gate:
            lease, self._lease = self._lease, None
            self._has_lost = False
            self._rounds_to_reopen = 0
            if lease is None:
                return
            lease.is_closing = True
            is_idle = lease.calls == 0
        if is_idle:
            lease.session.close()

    def _discover_once(self) -> GpuInventory:
        lease = self._enter(self._open())
        try:
            inventory = lease.session.discover()
        except DeviceGone:
            self._drop(lease)
            raise
        finally:
            self._leave(lease)
        if inventory.lost:
            self._has_lost = True
        return inventory

    def _open(self) -> _Lease:
        """Give the session, opened now if there is none.

        Raises:
            DriverUnavailable: it cannot be opened.
        """
        lease = self._lease
        if lease is not None:
            return lease
        try:
            from esnode.drivers.nvml.session import open_session
        except ImportError as error:
            raise DriverUnavailable(
                f"NVIDIA's Python binding cannot be imported ({error}): install nvidia-ml-py"
            ) from error
        lease = _Lease(session=open_session(self._read_module_version))
        with self._gate:
            self._lease = lease
        return lease

    def _reopen_for_lost(self) -> None:
        """Close the session if a device is lost and the time has come to look for it anew."""
        self._rounds_to_reopen = max(0, self._rounds_to_reopen - 1)
        if not self._has_lost or self._rounds_to_reopen > 0:
            return
        with self._gate:
            lease = self._lease
            if lease is None:
                return
            self._is_reopening = True
            is_idle = self._gate.wait_for(lambda: lease.calls == 0, _CALLS_WAIT_SECONDS)
            if is_idle and self._lease is lease:
                self._lease = None
            else:
                # Some call hangs: the healthy devices keep the session that they have.
                self._is_reopening = False
                self._gate.notify_all()
                return
        self._has_lost = False
        self._rounds_to_reopen = REOPEN_ROUNDS
        try:
            lease.session.close()
            self._open()
        finally:
            with self._gate:
                self._is_reopening = False
                self._gate.notify_all()

    @contextmanager
    def _calling(self, gpu: GpuIdentity) -> Iterator["Session"]:
        """Count a call of one device in and out, and word what voids it."""
        with self._gate:
            if not self._gate.wait_for(lambda: not self._is_reopening, _REOPEN_WAIT_SECONDS):
                raise DeviceFault(f"{gpu.uuid}: NVML is being re-opened")
            lease = self._lease
            if lease is None:
                raise DriverUnavailable("NVML is not open: the next discovery opens it")
            lease.calls += 1
        try:
            yield lease.session
            if lease.is_void:
                # Another device's call noticed it first; this one's answers may be empty.
                raise DeviceFault(f"{gpu.uuid}: NVML was closed during the call", is_lost=True)
        except DeviceGone as gone:
            if gone.is_session_void:
                self._drop(lease)
            else:
                self._has_lost = True
            raise DeviceFault(f"{gpu.uuid}: {gone.line}", is_lost=True) from gone
        finally:
            self._leave(lease)

    def _enter(self, lease: _Lease) -> _Lease:
        with self._gate:
            lease.calls += 1
        return lease

    def _leave(self, lease: _Lease) -> None:
        with self._gate:
            lease.calls -= 1
            is_last = lease.calls == 0
            self._gate.notify_all()
        if is_last and lease.is_closing and not lease.is_void:
            lease.session.close()

    def _drop(self, lease: _Lease) -> None:
        """Forget a void session, unless another has taken its place already."""
        with self._gate:
            lease.is_void = True
            if self._lease is lease:
                self._lease = None

    def _read_process_name(self, pid: int) -> str | None:
        try:
            text = (self._procfs_path / str(pid) / "comm").read_text(errors="replace")
        except OSError:
            return None
        return text.rstrip("\n") or None

    def _read_module_version(self) -> str | None:
        try:
            text = (self._procfs_path / "driver/nvidia/version").read_text(errors="replace")
        except OSError:
            return None
        version = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", text)
        return None if version is None else version.group()
