"""Prices, leases, charges and budgets: money and time only.

May import portal.notices, portal.teams and portal.core. Never asks what a subject is.
"""
