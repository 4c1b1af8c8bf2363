"""The command-line client: REST only, no Django."""
