"""Pages of jobs; each module is one noun."""
