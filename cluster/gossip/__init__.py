"""Who is here, and what each last said: SWIM with signed statements.

Pure: no clock, no socket, no file, no log. Knows no watt.
"""
