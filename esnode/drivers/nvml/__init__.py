"""NVIDIA GPUs through NVML: the only package that imports `pynvml`.

`driver` is all that others use, and it imports no `pynvml` until the first discovery; every other
module of this package imports it at its top. Nothing here knows collectors, intervals or metrics.
"""

from esnode.drivers.nvml.driver import NvmlDriver

__all__ = ["NvmlDriver"]
