"""Datasets: manifests of training examples with the trials they came from."""

from rsi.domain.values import Digest, Value, digest_value


class DatasetExample(Value):
    """One example: the messages of the plain contract and the reply to learn."""

    trial_pair: Digest
    trial_task: Digest
    trial_seed: int
    family: str
    messages: tuple[tuple[str, str], ...]
    """(role, text), as the plain contract shows the task."""
    completion: str


class Dataset(Value):
    """What an adapter is trained on; named by the SHA-256 of its canonical form."""

    contract: Digest
    """The plain contract that the examples are rendered for."""
    examples: tuple[DatasetExample, ...]

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return digest_value(self)


class CurationCount(Value):
    """How many trials a filter of the curation let through, and how many it dropped."""

    filter: str
    kept: int
    dropped: int
