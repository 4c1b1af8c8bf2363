"""Samples: figures of machines by instant, their rollups, and reading both.

A subject is an opaque text such as `job:<id>/<rank>`; a prefix of it names several.
"""
