"""Frozen values and pure rules, in the order of the data."""
