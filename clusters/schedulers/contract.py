"""What a scheduler must be able to do (pure)."""
