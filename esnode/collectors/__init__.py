"""One subject a file: each reads the kernel, a driver or an endpoint, and returns a reading."""
