"""The configuration: one table of keys, and how their values are found, checked and changed."""

from esnode.config.keys import KEYS, Config
from esnode.config.load import (
    ConfigError,
    LoadedConfig,
    Origin,
    find_file,
    load,
    simulated_hardware_file,
    state_directory,
)
from esnode.config.schema import Key

__all__ = [
    "KEYS",
    "Config",
    "ConfigError",
    "Key",
    "LoadedConfig",
    "Origin",
    "find_file",
    "load",
    "simulated_hardware_file",
    "state_directory",
]
