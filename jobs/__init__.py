"""What people want to run, and its story.

May import clusters and what is below it. jobs.reconcile alone writes the status columns of Job.
"""
