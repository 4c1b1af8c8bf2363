"""What a provider must be able to do (pure)."""
