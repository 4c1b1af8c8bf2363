"""Tests of portal.notices."""
