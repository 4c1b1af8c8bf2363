"""Rendering for Kubernetes (pure)."""
