"""The node agent, which is data for the portal."""
