"""Progress that is only remembered."""


class FakeProgress:
    """Keeps the `Progress` port; `said` and `stages` tell what was reported."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stages: list[str] = []

    def stage(self, name: str, steps: int) -> None:
        assert steps >= 0
        self.stages.append(name)

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Nothing to show."""

    def say(self, text: str) -> None:
        self.said.append(text)
