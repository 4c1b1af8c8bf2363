"""Leases, charges and budgets: wishes."""
