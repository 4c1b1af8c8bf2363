"""The supervisor: real processes, real PostgreSQL and Valkey, no Django."""
