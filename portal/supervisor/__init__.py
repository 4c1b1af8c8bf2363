"""Starts and stops one machine's processes: standard library only, and no room but `portal.env`."""
