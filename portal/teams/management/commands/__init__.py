"""Commands of people and teams."""
