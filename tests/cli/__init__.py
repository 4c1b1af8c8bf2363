"""Tests of portal.cli."""
