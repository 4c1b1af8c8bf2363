"""Status of jobs: the observer and the job pass."""
