"""Drivers over real sockets on loopback."""
