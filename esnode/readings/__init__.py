"""The nouns that collectors return: one frozen dataclass per subject, in base units."""
