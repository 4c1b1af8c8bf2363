"""One reader per followed job and stream in each process; sockets are cursors on it."""
