"""Contracts and evaluation contracts as TOML documents that people and the search edit."""
