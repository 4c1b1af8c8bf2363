"""Questions about clusters."""
