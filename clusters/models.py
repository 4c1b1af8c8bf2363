"""Tables of clusters."""
