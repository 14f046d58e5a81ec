"""Pairs: a model and a harness contract, versioned as one thing."""

from rsi.domain.values import Digest, Value, digest_value


class Pair(Value):
    """What is evaluated, promoted, served and rolled back."""

    model: Digest
    contract: Digest

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return digest_value(self)
