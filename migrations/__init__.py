"""Schema migrations of the ledger; they go forward only."""
