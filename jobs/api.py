"""REST of jobs: the routes that only jobs can answer."""
