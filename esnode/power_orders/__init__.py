"""What operators order about a rack's power: wishes in, decrees and what they would do out.

Its own folder because each order is first shown, then signed, and both must be the same arithmetic.
Pure: documents of an agent and the operators' records are handed in. It must not know terminals,
keys or sockets.
"""
