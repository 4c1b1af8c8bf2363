"""REST of jobs; each module is one noun."""
