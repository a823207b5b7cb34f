"""A second driver for the same cores, in virtual time. Nothing may import this package."""
