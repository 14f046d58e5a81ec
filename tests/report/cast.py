"""Who and what takes part in the sample generation."""

from datetime import UTC, datetime

from rsi.domain.dataset import Dataset
from rsi.domain.evaluation import DiscoveryRule, Evaluation, ExpansionRule, GateRule, SuiteChoice
from rsi.domain.generation import Stage
from rsi.domain.lora import Base, Fidelity, Recipe, TrainingRun
from rsi.domain.trial import Cause
from tests.samples import contract, digest

OPENED = datetime(2030, 1, 1, 22, 0, tzinfo=UTC)
STAGE_S = {Stage.DISCOVERY: 95, Stage.EXPANSION: 260, Stage.UPDATE: 310, Stage.GATE: 140}
KINDS = (
    "count-lines", "longest-line", "sort-numbers", "join-files", "most-frequent", "rename",
    "sum-column", "reverse", "find-large", "replace-word", "unique-lines", "head-tail",
    "extract-field", "archive",
)  # fmt: skip
CAUSES = (Cause.WRONG_ANSWER, Cause.WRONG_ANSWER, Cause.MALFORMED_ACTION, Cause.TOOL_ERROR)
EVALUATION = Evaluation(
    evaluation="1",
    name="sample",
    suites=(SuiteChoice(kind="shell"),),
    discovery=DiscoveryRule(tasks=56, hardened=8),
    expansion=ExpansionRule(attempts=192, holdout_tasks=24),
    gate=GateRule(exam_tasks=56),
)
OLD = contract(name="shell")
NEW = contract(name="shell", version="1.0.1", prompt={"system": "Answer with one command."})
BASE = Base(name="SmolLM2-135M-Instruct", digest=digest("base"), format="gguf:Q4_1")
FULL = Base(
    name="SmolLM2-135M-Instruct", digest=digest("full"), format="gguf:F16", derived_from=BASE.digest
)
RECIPE = Recipe(
    rank=16, alpha=32, learning_rate=5e-4, epochs=3, batch_size=8, max_steps=48, seconds=600
)


def training_run(dataset: Dataset, losses: tuple[float, ...]) -> TrainingRun:
    """The training of generation 1 on the dataset."""
    return TrainingRun(
        generation=1,
        dataset=dataset.digest,
        recipe=RECIPE,
        parent=None,
        lora=digest("lora"),
        steps=len(losses),
        examples=len(dataset.examples),
        first_loss=losses[0],
        last_loss=losses[-1],
        losses=losses,
        tokens=23_040,
        elapsed_s=204.0,
        fidelity=(
            Fidelity(base=FULL.digest, prompts=24, agreement=23 / 24, changed=1.0),
            Fidelity(base=BASE.digest, prompts=24, agreement=0.75, changed=23 / 24),
        ),
    )
