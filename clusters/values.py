"""Values of clusters that cross rooms (pure)."""
