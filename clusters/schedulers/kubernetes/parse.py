"""Parsing of Kubernetes's answers (pure)."""
