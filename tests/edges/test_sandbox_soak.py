"""A runner that is killed again and again leaves nothing; `make soak-sandbox` is the long form."""

import pytest

from benchmarks.soak import Census, soak
from rsi.ports import Sandbox
from tests.fixtures.sandbox import ROOT


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("namespaces", marks=pytest.mark.namespaces),
    ],
)
def test_killed_runners_leave_nothing(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox: Sandbox = request.getfixturevalue(f"{kind.removesuffix('s')}_sandbox")
    sandbox.check()
    monkeypatch.chdir(ROOT)
    found = soak(kind, trials=24, kills=2, seed=3)
    assert found.left == Census()
    assert (found.kills, found.trials >= 24) == (2, True)
