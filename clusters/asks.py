"""Read-only questions to the outside within a request."""
