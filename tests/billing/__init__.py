"""Money: the arithmetic, the ledger under random histories, caps under load."""
