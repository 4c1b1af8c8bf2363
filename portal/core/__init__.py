"""What every room stands on: clock, ids, errors, turns, wake-ups, hints, crypto, HTTP, logs.

Imports nothing of Slipway. Owns no business table.
"""
