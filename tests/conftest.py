"""Loads the session fixtures of the real parts."""

from hypothesis import settings

pytest_plugins = [
    "tests.fixtures.model",
    "tests.fixtures.postgres",
    "tests.fixtures.sandbox",
]

# A busy machine must not fail a property: an example's time says nothing about it.
settings.register_profile("rsi", deadline=None, max_examples=50)
settings.load_profile("rsi")
