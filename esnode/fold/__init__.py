"""From raw readings to what follows from them: rates, totals, choices. Pure; `now` is handed in.

Each file keeps the little memory that its subject needs (the last sample, a running total) in one
object with one verb, `fold`.
"""
