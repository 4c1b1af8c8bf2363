"""Pages of people and teams; each module is one noun."""
