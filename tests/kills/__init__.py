"""A live portal whose parts are killed while jobs run: one process ever, each line once."""
