"""The rules that every actuator of this node stands under, as pure code: no clock and no file."""
