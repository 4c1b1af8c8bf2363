"""Celery's doors into billing.reconcile."""
