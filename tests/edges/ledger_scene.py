"""A ledger in which the first generation is open, and values to add to it."""

from datetime import UTC, datetime

from rsi.domain.contract import Slot
from rsi.domain.dataset import Dataset, DatasetExample
from rsi.domain.evaluation import DiscoveryRule, Evaluation, ExpansionRule, GateRule, SuiteChoice
from rsi.domain.generation import Generation, Stage, StageEvent, StageState
from rsi.domain.lora import Base, Lora, Model, Recipe, TrainingRun
from rsi.domain.pair import Pair
from rsi.domain.promotion import Promotion
from rsi.domain.search import Candidate, Coverage, CoveragePoint, Finalist
from rsi.domain.task import Split
from rsi.domain.trial import Trial, TrialKey
from rsi.domain.values import Digest
from rsi.domain.verdict import Attribution, Decision, Interval, Regression, Verdict
from rsi.ports import Ledger
from tests.samples import contract, digest, task, trial

NOW = datetime(2030, 1, 1, 22, 30, tzinfo=UTC)
BASE = Base(name="small", digest=digest("base"), format="gguf:Q4_1")
PLAIN = contract(name="plain")
BETTER = contract(name="better", prompt={"system": "Answer with one command."})
MODEL = Model(base=BASE.digest)
OLD = Pair(model=MODEL.digest, contract=PLAIN.digest)
NEW = Pair(model=MODEL.digest, contract=BETTER.digest)
EVALUATION = Evaluation(
    evaluation="1",
    name="scene",
    suites=(SuiteChoice(kind="shell"),),
    discovery=DiscoveryRule(tasks=4, hardened=1),
    expansion=ExpansionRule(attempts=8, holdout_tasks=2),
    gate=GateRule(exam_tasks=4),
)
GENERATION = Generation(
    number=1, champion=OLD.digest, evaluation=EVALUATION.digest, seed=1, opened_at=NOW
)
TASKS = tuple(task(f"task-{number}") for number in range(6))
SEARCH, HOLDOUT, EXAM = TASKS[0:2], TASKS[2:4], TASKS[4:6]
RECIPE = Recipe(
    rank=8, alpha=16, learning_rate=5e-4, epochs=1, batch_size=4, max_steps=10, seconds=60
)
FIRST = Promotion(
    ordinal=0, pair=OLD.digest, replaced=None, verdict=None, reason="the first", at=NOW
)


def opened(ledger: Ledger) -> Ledger:
    """The ledger with two pairs, six tasks in three splits, and generation 1."""
    for one in (PLAIN, BETTER):
        ledger.add_contract(one, f"# by hand\nname = '{one.name}'\n")
    ledger.add_evaluation(EVALUATION)
    ledger.add_base(BASE)
    ledger.add_pair(OLD, MODEL)
    ledger.add_pair(NEW, MODEL)
    ledger.add_promotion(FIRST)
    ledger.open_generation(GENERATION)
    ledger.add_tasks(TASKS)
    for split, tasks in ((Split.SEARCH, SEARCH), (Split.HOLDOUT, HOLDOUT), (Split.EXAM, EXAM)):
        ledger.use_tasks(1, split, [each.digest for each in tasks])
    return ledger


def run(pair: Pair, at: Digest, seed: int = 0, *, solved: bool = True, blob: str = "") -> Trial:
    """A trial of generation 1."""
    stored = digest(blob) if blob else None
    return trial(pair.digest, at, seed, solved=solved, trajectory=stored)


def event(ordinal: int, stage: Stage, state: StageState, note: str = "") -> StageEvent:
    """An event of generation 1, with a result."""
    return StageEvent(
        generation=1,
        ordinal=ordinal,
        stage=stage,
        state=state,
        at=NOW,
        note=note,
        result={"tasks": ordinal, "share": 0.5, "big": 2**70, "deep": [{"b": None, "a": "é"}]},
    )


def dataset(*trials: Trial) -> Dataset:
    """One example for each trial."""
    return Dataset(
        contract=PLAIN.digest,
        examples=tuple(
            DatasetExample(
                trial_pair=each.pair,
                trial_task=each.task,
                trial_seed=each.seed,
                family="lines",
                messages=(("system", "Act."), ("user", "Print it.")),
                completion="echo it",
            )
            for each in trials
        ),
    )


def lora(made_of: Dataset, name: str = "lora", parent: Digest | None = None) -> Lora:
    """A revision trained on the dataset."""
    return Lora(
        digest=digest(name),
        base=BASE.digest,
        slot=Slot.AGENT,
        dataset=made_of.digest,
        recipe=RECIPE,
        parent=parent,
    )


def training_run(made_of: Dataset, made: Lora) -> TrainingRun:
    """The run of generation 1 that made the lora."""
    return TrainingRun(
        generation=1,
        dataset=made_of.digest,
        recipe=RECIPE,
        parent=made.parent,
        lora=made.digest,
        steps=10,
        examples=len(made_of.examples),
        first_loss=2.5,
        last_loss=1e-7,
        losses=(2.5, 1e-7),
        tokens=100,
        elapsed_s=3.5,
    )


def candidate(ordinal: int, proposed: Digest, parent: Digest | None = None) -> Candidate:
    """A proposal without edits."""
    return Candidate(
        contract=proposed, parent=parent, edits=(), author="operator:none", ordinal=ordinal
    )


def coverage() -> Coverage:
    """Of two tasks one was covered; two finalists."""
    return Coverage(
        tasks=2,
        covered=1,
        attempts=5,
        tokens=75,
        stopped="budget spent",
        curve=(CoveragePoint(attempts=5, tokens=75, covered=1),),
        winners={SEARCH[0].digest: BETTER.digest},
        finalists=(
            Finalist(contract=BETTER.digest, solved=2, trials=2, invalid=0, is_chosen=True),
            Finalist(contract=PLAIN.digest, solved=0, trials=2, invalid=1, is_chosen=False),
        ),
    )


def verdict(*evidence: TrialKey, decision: Decision = Decision.PROMOTE) -> Verdict:
    """A verdict of generation 1 on the evidence."""
    gain = Interval(estimate=0.5, low=0.25, high=0.75, n=2)
    return Verdict(
        generation=1,
        champion=OLD.digest,
        successor=NEW.digest,
        evaluation=EVALUATION.digest,
        decision=decision,
        reasons=("the gain's lower bound is above 0",),
        gain=gain,
        smallest_resolvable=0.25,
        needed_pairs=None,
        arms=(),
        attribution=Attribution(contract=gain, weights=gain, interaction=gain),
        regression=Regression(tasks=0, kept=0, lost=0, invalid=0),
        families=(),
        evidence=evidence,
    )


def promotion(of: Verdict, ordinal: int = 1) -> Promotion:
    """The successor becomes champion."""
    return Promotion(
        ordinal=ordinal,
        pair=of.successor,
        replaced=of.champion,
        verdict=of.digest,
        reason="it is better",
        at=NOW,
    )
