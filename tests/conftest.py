"""Loads the session fixtures of the real parts."""

pytest_plugins = [
    "tests.fixtures.model",
    "tests.fixtures.postgres",
    "tests.fixtures.sandbox",
]
