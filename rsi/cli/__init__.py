"""The `rsi` command: it reads, validates and rolls back. rich lives here, for terminals only."""
