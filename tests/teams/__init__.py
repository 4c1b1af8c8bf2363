"""The tests of people and teams."""
