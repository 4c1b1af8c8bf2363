"""Stand-ins for outside systems: real servers on loopback."""
