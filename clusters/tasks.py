"""Celery's doors into clusters.reconcile."""
