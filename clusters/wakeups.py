"""Knocks on the doors of clusters.tasks, after commit."""
