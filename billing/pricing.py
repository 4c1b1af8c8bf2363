"""What a second costs (pure)."""
