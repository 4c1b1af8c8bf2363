"""REST of clusters."""
