"""Prefect flows: thin; each fetches, calls a stage and shows what the ledger recorded."""
