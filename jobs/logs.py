"""The store of log lines and samples that agents post."""
