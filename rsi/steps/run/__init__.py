"""Run: one trial, from the first message to the judged outcome."""
