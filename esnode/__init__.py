"""esnode: one agent per node of a GPU rack, and no controller."""

__version__ = "0.1.0"
