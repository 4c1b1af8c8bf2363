"""Commands of clusters."""
