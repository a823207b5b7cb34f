"""HTTP: what is served, and how. Quart stays inside this folder."""
