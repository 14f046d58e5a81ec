"""Every error that rsi raises on purpose, as one tree.

    RsiError
    ├── UsageError            the person gave something wrong: nothing was changed
    │   ├── ContractError     a contract or evaluation contract has faults (all of them listed)
    │   ├── TaskError         a task directory or a suite has faults
    │   └── SettingsError     an environment variable can't be used
    ├── PartError             a part of the machine is missing or down: mend it and run again
    │   ├── DatabaseError
    │   ├── SandboxError      the sandbox engine is down or refuses
    │   ├── ModelError        the model server is down, or a model file is missing or wrong
    │   ├── TrainerError
    │   ├── BlobError
    │   └── DiskError         too little room to go on
    ├── TrialFault            one trial broke: it becomes Invalid(where, reason), never a failure
    ├── LedgerConflict        a row with the same natural key says something else
    └── DisciplineError       an exam or holdout task would have reached where it must not

The exit status of the command line is in `exit_code`.
"""


class RsiError(Exception):
    """An error whose message says what was tried, with which value, and what to do."""

    exit_code = 1


class UsageError(RsiError):
    """The person gave something wrong; nothing was changed."""

    exit_code = 2


class ContractError(UsageError):
    """A contract has faults; `faults` holds every one of them, each with its place."""

    def __init__(self, source: str, faults: tuple[str, ...]) -> None:
        self.source = source
        self.faults = faults
        listed = "\n".join(f"  {fault}" for fault in faults)
        super().__init__(f"{source} has {len(faults)} fault(s):\n{listed}")


class TaskError(UsageError):
    """A task directory or a suite has faults."""


class SettingsError(UsageError):
    """An environment variable or path can't be used."""


class PartError(RsiError):
    """A part of the machine is missing or down; mend it and run again."""

    exit_code = 3


class DatabaseError(PartError):
    """Postgres doesn't answer, or its schema isn't one this release knows."""


class SandboxError(PartError):
    """The sandbox engine is down or refuses to make a box."""


class ModelError(PartError):
    """The model server is down, or a model file is missing or wrong."""


class TrainerError(PartError):
    """Training could not be run to its end."""


class BlobError(PartError):
    """The blob store can't be read or written."""


class DiskError(PartError):
    """Too little disk is left to go on safely."""


class TrialFault(RsiError):
    """One trial broke for a reason that says nothing about the pair."""

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}")


class LedgerConflict(RsiError):
    """A row with the same natural key already says something else."""


class DisciplineError(RsiError):
    """An exam or holdout task would have reached a place where it must not be."""
