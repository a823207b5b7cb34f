"""Who belongs to a cluster, and what each may do: rules over certificates and signed records.

Pure but for `files`: no cryptography, no clock, no network. Certificates arrive as facts, whole
seconds of wall time are handed in, and signatures are judged by a verifier that is handed in.
"""
