"""REST of people, teams, tokens, secrets and events."""
