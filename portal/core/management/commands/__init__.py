"""Commands of portal.core."""
