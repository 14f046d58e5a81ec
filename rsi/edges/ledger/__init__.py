"""The ledger in Postgres: rows, and the edge that writes and reads them."""
