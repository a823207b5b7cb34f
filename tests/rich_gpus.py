"""Eight rich GPUs, of which the last does not answer."""

from esnode.readings.gpu import (
    EccCount,
    GpuIdentity,
    GpuInventory,
    GpuProcess,
    GpuReading,
)
from esnode.readings.host import Absence
from esnode.snapshot import GpuState
from tests.rich_host import ABSENT, AWKWARD


def gpu_uuid(index: int) -> str:
    return f"GPU-0000000{index}"


def gpu_identity(index: int) -> GpuIdentity:
    return GpuIdentity(
        uuid=gpu_uuid(index),
        index=index,
        name="NVIDIA H100 80GB HBM3" if index else AWKWARD,
        vendor="nvidia",
        pci_bus_id=f"00000000:{index + 16:02x}:00.0",
        serial=f"16501{index}",
        vbios_version="96.00.89.00.01",
        architecture="hopper",
        minor_number=index,
        numa_node=index // 4,
        pci_device_id="0x233010de",
        pci_subsystem_id="0x16c110de",
        board_id=256 * index,
        is_mig_supported=True,
    )


def gpu_reading(index: int) -> GpuReading:
    return GpuReading(
        identity=gpu_identity(index),
        utilization_ratio=0.57,
        memory_utilization_ratio=0.25,
        encoder_utilization_ratio=0.125,
        decoder_utilization_ratio=0.0625,
        memory_total_bytes=81559 << 20,
        memory_used_bytes=40000 << 20,
        memory_free_bytes=41080 << 20,
        memory_reserved_bytes=479 << 20,
        bar1_total_bytes=131072 << 20,
        bar1_used_bytes=12 << 20,
        temperature_celsius=65.0,
        memory_temperature_celsius=72.0,
        slowdown_celsius=89.0,
        shutdown_celsius=95.0,
        temperature_margin_celsius=22.0,
        power_average_watts=600.5,
        power_instant_watts=612.25,
        power_limit_default_watts=700.0,
        power_limit_min_watts=200.0,
        power_limit_max_watts=700.0,
        power_limit_requested_watts=650.0,
        power_limit_enforced_watts=640.0,
        energy_joules_total=123_456.789,
        clock_sm_hertz=1.98e9,
        clock_memory_hertz=2.619e9,
        clock_graphics_hertz=1.965e9,
        clock_video_hertz=1.545e9,
        clock_sm_max_hertz=1.98e9,
        clock_memory_max_hertz=2.619e9,
        clock_graphics_max_hertz=1.98e9,
        performance_state=0,
        throttle_reasons=("sw_power_cap", "hw_thermal_slowdown"),
        violation_seconds_total=(("power", 12.5), ("thermal", 0.25)),
        fan_speed_ratios=(0.4, 0.45),
        is_ecc_enabled=True,
        ecc=(
            EccCount(error="corrected", scope="volatile", location="total", errors_total=7),
            EccCount(error="uncorrected", scope="volatile", location="total", errors_total=1),
            EccCount(error="corrected", scope="aggregate", location="sram", errors_total=9),
        ),
        retired_pages=(("single_bit", 2),),
        remapped_rows=(("corrected", 3), ("uncorrected", 1)),
        is_remap_pending=True,
        is_remap_failed=False,
        pcie_link_generation=5,
        pcie_link_generation_max=5,
        pcie_link_width=16,
        pcie_link_width_max=16,
        pcie_replays_total=4,
        is_persistence_enabled=True,
        is_mig_enabled=False,
        unlisted_process_count=11,
        processes=(GpuProcess(pid=4242, kind="compute", name=AWKWARD, memory_used_bytes=1 << 30),),
        absent=ABSENT,
    )


def gpu_state(index: int) -> GpuState:
    return GpuState(
        uuid=gpu_uuid(index),
        is_up=True,
        reason="it may come back",
        index=index,
        reading=gpu_reading(index),
        age_seconds=0.5,
        throttle_seconds_total=(("hw_thermal_slowdown", 1.5), ("sw_power_cap", 20.0)),
        energy_joules_total=123_456.789,
        energy_source="counter",
        has_new_ecc_errors=True,
    )


LOST_GPU = GpuState(uuid=gpu_uuid(7), is_up=False, reason="GPU is lost", index=7)

INVENTORY = GpuInventory(
    driver="nvml",
    driver_version="590.48.01",
    library_version="13.590.48.01",
    cuda_version="13.1",
    gpus=tuple(gpu_identity(index) for index in range(8)),
    lost=(Absence(what="gpu:8", reason="Unknown Error"),),
    found_count=9,
    absent=(Absence(what="visible_devices:12", reason="no GPU of that index"),),
)
