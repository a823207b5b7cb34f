"""Long checks with real processes. `python -m tests.soak.power` is the one of rack power."""
