"""Faults that were found by attacking a running portal, each with the test that holds it shut."""
