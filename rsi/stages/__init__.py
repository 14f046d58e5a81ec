"""The four stages of a generation, composed of steps; each resumes from the ledger."""
