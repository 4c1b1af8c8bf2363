"""IAM policies as values (pure)."""
