"""What a rack is made of: how each node is, and what that comes to. Knows no datagram."""
