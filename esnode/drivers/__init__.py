"""Back ends that read the hardware, and later act on it, in our units."""
