"""Bytes of the wire that must never change their meaning, with what each of them says."""
