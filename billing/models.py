"""Tables of billing."""
