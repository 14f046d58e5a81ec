"""The whole test suite; it mirrors rsi/ and flows/."""
