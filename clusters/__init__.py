"""Machines, and every door to the outside.

May import billing and what is below it. clusters.connect alone builds adapters.
"""
