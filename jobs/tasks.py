"""Celery's doors into jobs.reconcile and jobs.logs."""
