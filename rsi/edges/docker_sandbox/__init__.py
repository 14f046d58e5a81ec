"""Boxes in Docker containers, and the engine that runs them."""
