"""Money, rates and spans of time (pure)."""
