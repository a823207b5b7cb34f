"""The families that the predecessor did set: each is served here, or said not to be."""

import re

import pytest

from esnode.metrics import served_metrics
from tests.architecture.source_files import ROOT

SET_BY_A_COLLECTOR = """
    cpu_load_avg_1m cpu_usage_percent cpu_load_avg_5m cpu_load_avg_15m cpu_time_seconds_total
    cpu_interrupts_total cpu_context_switches_total numa_memory_total_bytes
    numa_memory_free_bytes numa_memory_used_bytes numa_cpu_usage_percent numa_distance
    memory_total_bytes memory_used_bytes memory_free_bytes memory_available_bytes
    memory_buffers_bytes memory_cached_bytes swap_total_bytes swap_used_bytes swap_free_bytes
    page_in_bytes_total page_out_bytes_total disk_total_bytes disk_used_bytes disk_free_bytes
    disk_read_bytes_total disk_written_bytes_total disk_read_ops_total disk_write_ops_total
    disk_io_time_ms_total disk_degradation_busy disk_io_avg_latency_ms disk_degradation_latency
    network_rx_bytes_total network_tx_bytes_total network_rx_errors_total
    network_rx_packets_total network_tx_packets_total network_rx_dropped_total
    network_tx_dropped_total network_degradation_drops swap_degradation_spike degradation_score
    cpu_package_power_watts node_energy_joules_total gpu_utilization_percent
    gpu_memory_total_bytes gpu_memory_used_bytes gpu_temperature_celsius gpu_power_watts
    gpu_utilization_percent_compat gpu_memory_used_bytes_compat gpu_temperature_celsius_compat
    gpu_power_watts_compat gpu_power_limit_watts gpu_ecc_errors_total gpu_ecc_mode
    gpu_energy_joules_total gpu_pcie_tx_bytes_total gpu_pcie_rx_bytes_total
    gpu_nvlink_errors_total gpu_pcie_replay_errors_total gpu_degradation_throttle
    gpu_degradation_ecc gpu_fan_speed_percent gpu_clock_sm_mhz gpu_clock_mem_mhz
    gpu_clock_graphics_mhz gpu_pstate gpu_bar1_used_bytes gpu_bar1_total_bytes
    gpu_encoder_utilization_percent gpu_decoder_utilization_percent gpu_throttle_reason
    gpu_events_total cpu_temperature_celsius gpu_nvlink_rx_bytes_total gpu_nvlink_tx_bytes_total
    mig_utilization_percent mig_memory_used_bytes mig_memory_total_bytes mig_sm_count
    mig_ecc_corrected_total mig_ecc_uncorrected_total mig_bar1_total_bytes mig_bar1_used_bytes
    gpu_mig_supported gpu_mig_enabled mig_info mig_gpu_instance_info mig_compute_instance_info
    pcie_bandwidth_percent pcie_link_width pcie_link_gen cpu_package_energy_joules_total
    cpu_core_power_watts node_power_envelope_exceeded agent_scrape_duration_seconds
    agent_errors_total agent_running agent_start_time_seconds agent_build_info
    ai_tokens_per_watt agent_collector_disabled app_tokens_per_sec policy_violations_total
    policy_enforced_total rca_detections_total gpu_failure_risk_score iot_sensor_value pue_ratio
    pue_it_power_watts pue_facility_power_watts pue_efficiency_percent pue_overhead_watts
"""
"""Without ``esnode_``. Source: ESNODE-Core's `metrics.rs`, every constructor and registration."""


def names_said_to_be_missing() -> list[str]:
    page = (ROOT / "docs/operating/migrating.md").read_text(encoding="utf-8")
    (paragraph,) = (
        part for part in page.split("\n\n") if "do not exist here yet" in " ".join(part.split())
    )
    return re.findall(r"`esnode_([\w*]+)`", paragraph)


@pytest.mark.parametrize("name", SET_BY_A_COLLECTOR.split())
def test_a_family_of_the_predecessor_is_served_or_said_to_be_missing(name: str) -> None:
    served = {m.name for m in served_metrics(("esnode-core",), is_kubernetes=True)}
    missing = names_said_to_be_missing()

    is_missing = any(
        re.fullmatch(pattern.replace("*", ".*"), name) is not None for pattern in missing
    )
    assert (f"esnode_{name}" in served) is not is_missing
