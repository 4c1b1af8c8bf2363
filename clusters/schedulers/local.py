"""Jobs as detached sessions on this machine."""
