"""Verdicts of budgets and recomputation of the ledger."""
