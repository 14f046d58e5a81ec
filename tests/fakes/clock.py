"""A clock that moves only when somebody sleeps."""

from datetime import UTC, datetime, timedelta

_START = datetime(2030, 1, 1, tzinfo=UTC)


class FakeClock:
    """Starts at the beginning of 2030; `slept` lists the pauses in seconds."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return _START + timedelta(seconds=sum(self.slept))

    def monotonic_s(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
