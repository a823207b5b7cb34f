"""Bytes that nobody should send, in large numbers, against code that must not mind."""
