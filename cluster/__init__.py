"""What peers say to each other and decide together: pure state machines and two drivers.

Knows no HTTP, no NVML and no configuration file. Nothing here may import `esnode`.
"""
