"""Users, teams, roles, limits, tokens, secrets, the event log and its audit chain.

May import portal.core. Its services write every column here, except that the sealer
(portal.teams.reconcile) alone writes AuditSeal.
"""
