"""Periods and verdicts of budgets (pure)."""
