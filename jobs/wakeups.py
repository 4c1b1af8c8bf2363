"""Knocks on the doors of jobs.tasks, after commit."""
