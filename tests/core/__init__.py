"""Tests of portal.core."""
