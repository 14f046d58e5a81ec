"""A whole sample generation in a ledger in memory, stage by stage, with figures worth a look."""

import random
from collections.abc import Sequence
from datetime import timedelta

from pydantic import JsonValue

from rsi.domain.contract import Edit, Slot
from rsi.domain.dataset import Dataset, DatasetExample
from rsi.domain.generation import Generation, Stage, StageEvent, StageState
from rsi.domain.lora import Lora, Model
from rsi.domain.pair import Pair
from rsi.domain.promotion import Promotion
from rsi.domain.search import Candidate, Coverage, CoveragePoint, Finalist
from rsi.domain.task import Split, Task
from rsi.domain.trial import Trial, Usage
from rsi.domain.values import Digest
from rsi.domain.verdict import Decision
from rsi.ports import Ledger
from rsi.stages.discovery import _flat
from rsi.steps.gate import ARMS, Evidence, gate
from rsi.steps.mine import mine
from tests.fakes.ledger import FakeLedger
from tests.report.cast import (
    BASE,
    CAUSES,
    EVALUATION,
    FULL,
    KINDS,
    NEW,
    OLD,
    OPENED,
    RECIPE,
    STAGE_S,
    training_run,
)
from tests.samples import digest, task, trial


class Night:
    """Generation 1 of a ledger, played as far as asked; `text` stands for what others wrote."""

    def __init__(
        self,
        text: str = "How many lines are in kiwi.txt?",
        seed: int = 7,
        ledger: Ledger | None = None,
    ) -> None:
        self.ledger: Ledger = ledger or FakeLedger()
        self.text = text
        self._rng = random.Random(seed)
        self._at = OPENED
        self._ordinal = 0
        ledger, old = self.ledger, Model(base=BASE.digest)
        ledger.add_contract(OLD, "# as written by hand\nhcp = '1'\n")
        ledger.add_contract(NEW, "hcp = '1'\n")
        ledger.add_evaluation(EVALUATION)
        ledger.add_base(BASE)
        ledger.add_base(FULL)
        self.old = self._pair(old, OLD.digest)
        self.finalist = self._pair(old, NEW.digest)
        self.new = self.finalist
        ledger.add_promotion(
            Promotion(
                ordinal=0, pair=self.old, replaced=None, verdict=None, reason="the first", at=OPENED
            )
        )
        ledger.open_generation(
            Generation(
                number=1,
                champion=self.old,
                evaluation=EVALUATION.digest,
                seed=1,
                opened_at=OPENED,
            )
        )

    def play(self, *stages: Stage) -> Ledger:
        """Plays the stages to their ends."""
        acts = {
            Stage.DISCOVERY: self._discovery,
            Stage.EXPANSION: self._expansion,
            Stage.UPDATE: self._update,
            Stage.GATE: self._gate,
        }
        for stage in stages:
            self.event(stage, StageState.STARTED)
            result = acts[stage]()
            self._at += timedelta(seconds=STAGE_S[stage])
            self.event(stage, StageState.FINISHED, result=result)
        return self.ledger

    def event(
        self,
        stage: Stage,
        state: StageState,
        note: str = "",
        result: dict[str, JsonValue] | None = None,
    ) -> None:
        """Records one event of the stage."""
        self.ledger.add_event(
            StageEvent(
                generation=1,
                ordinal=self._ordinal,
                stage=stage,
                state=state,
                at=self._at,
                note=note,
                result=result or {},
            )
        )
        self._ordinal += 1

    def tasks(self, label: str, split: Split, count: int) -> list[Task]:
        """Recorded tasks, spread over families and two levels."""
        made = [
            task(
                f"{label}-{number}", KINDS[number % len(KINDS)], 1 + number // len(KINDS) % 2
            ).model_copy(update={"instruction": self.text})
            for number in range(count)
        ]
        self.ledger.add_tasks(made)
        self.ledger.use_tasks(1, split, [each.digest for each in made])
        return made

    def run(self, pair: Digest, tasks: Sequence[Task], seed: int, chance: float) -> list[Trial]:
        """Recorded trials of the pair, each solved by this chance; some invalid."""
        made = []
        for number, each in enumerate(tasks):
            luck = self._rng.random()
            one = trial(
                pair,
                each.digest,
                seed,
                solved=luck < chance,
                invalid=luck > 0.985,
                cause=CAUSES[number % len(CAUSES)],
            )
            usage = Usage(
                input_tokens=61, cached_tokens=40, output_tokens=17, model_calls=1, model_s=0.4,
                sandbox_s=0.09, verifier_s=0.07,
            )  # fmt: skip
            began = self._at + timedelta(seconds=1 + number / 10)
            made.append(one.model_copy(update={"usage": usage, "started_at": began}))
            self.ledger.add_trial(made[-1])
        return made

    def _pair(self, model: Model, contract_digest: Digest) -> Digest:
        pair = Pair(model=model.digest, contract=contract_digest)
        self.ledger.add_pair(pair, model)
        return pair.digest

    def _discovery(self) -> dict[str, JsonValue]:
        tasks = self.tasks("search", Split.SEARCH, 56)
        trials = self.run(self.old, tasks, 1000, 0.05)
        found = mine(trials, {each.digest: each for each in tasks})
        hardened: list[JsonValue] = [
            {
                "family": weak.family, "from_level": weak.level, "to_level": weak.level + 1,
                "made": 3, "admitted": 2, "refused": [f"the no-op passes: {self.text}"],
                "trials": 2, "champion_solved": 0,
            }
            for weak in found[:6]
        ]  # fmt: skip
        return {"tasks": 56, "weaknesses": [_flat(each) for each in found], "hardened": hardened}

    def _expansion(self) -> dict[str, JsonValue]:
        tasks = self.ledger.tasks(self.ledger.used_tasks(1, Split.SEARCH))
        solved = [one for one in self.run(self.finalist, tasks, 1100, 0.6) if one.is_solved]
        self.ledger.add_candidates(
            1,
            [
                Candidate(
                    contract=NEW.digest,
                    parent=OLD.digest,
                    edits=(
                        Edit(key="skills.cookbook.shown", value=3),
                        Edit(key="prompt.system", value=self.text),
                        Edit(key="prompt.examples", value=[{"reply": "wc -l < kiwi.txt"}] * 12),
                    ),
                    author="operator:cookbook+pool",
                    ordinal=0,
                )
            ],
        )
        total = len(solved)
        self.ledger.add_coverage(
            1,
            Coverage(
                tasks=56,
                covered=total,
                attempts=192,
                tokens=15_360,
                stopped="budget spent",
                curve=tuple(
                    CoveragePoint(attempts=n, tokens=80 * n, covered=_covered(n, total))
                    for n in range(16, 193, 16)
                ),
                winners={one.task: NEW.digest for one in solved},
                finalists=(
                    Finalist(contract=OLD.digest, solved=1, trials=24, invalid=0, is_chosen=False),
                    Finalist(contract=NEW.digest, solved=11, trials=23, invalid=1, is_chosen=True),
                ),
            ),
        )
        return {
            "tasks": 56, "covered": total, "attempts": 192, "tokens": 15_360,
            "stopped": "budget spent", "finalist": NEW.digest,
        }  # fmt: skip

    def _update(self) -> dict[str, JsonValue]:
        solved = self.ledger.trials_of(pair=self.finalist, solved=True)
        tasks = self.ledger.tasks([one.task for one in solved])
        dataset = Dataset(
            contract=OLD.digest,
            examples=tuple(
                DatasetExample(
                    trial_pair=one.pair,
                    trial_task=one.task,
                    trial_seed=one.seed,
                    family=each.family,
                    messages=(("user", each.instruction),),
                    completion="wc -l < kiwi.txt",
                )
                for one, each in zip(solved, tasks, strict=True)
            ),
        )
        self.ledger.add_dataset(1, dataset)
        lora = digest("lora")
        self.ledger.add_lora(
            Lora(
                digest=lora,
                base=BASE.digest,
                slot=Slot.AGENT,
                dataset=dataset.digest,
                recipe=RECIPE,
            )
        )
        losses = tuple(0.2 + 2.6 * 0.9**step + self._rng.random() / 8 for step in range(48))
        self.ledger.add_training_run(training_run(dataset, losses))
        model = Model(base=FULL.digest, loras={Slot.AGENT: lora})
        self.new = self._pair(model, OLD.digest)
        self._pair(model, NEW.digest)
        return {
            "outcome": "trained", "reason": "", "dataset": dataset.digest,
            "examples": len(dataset.examples), "lora": lora, "successor_pair": self.new,
            "families": {}, "filters": [{"filter": "not a duplicate", "kept": 31, "dropped": 4}],
            "successors": [
                {"pair": self.new, "solved": 19, "trials": 24, "invalid": 0},
                {"pair": self.finalist, "solved": 11, "trials": 23, "invalid": 1},
            ],
        }  # fmt: skip

    def _gate(self) -> dict[str, JsonValue]:
        tasks = self.tasks("exam", Split.EXAM, 56)
        new = self.ledger.pair(self.new).model
        pairs = (self.old, self.finalist, self.new, Pair(model=new, contract=NEW.digest).digest)
        trials = {
            arm: (pair, self.run(pair, tasks, 1500, chance))
            for arm, pair, chance in zip(ARMS, pairs, (0.03, 0.45, 0.85, 0.8), strict=True)
        }
        again = self.ledger.tasks(
            [one.task for one in self.ledger.trials_of(pair=self.old, solved=True)][:8]
        )
        self.ledger.use_tasks(1, Split.REGRESSION, [each.digest for each in again])
        verdict = gate(
            Evidence(
                generation=1,
                evaluation=EVALUATION.digest,
                champion=self.old,
                successor=self.new,
                arms=trials,
                regression=list(
                    zip(
                        self.run(self.old, again, 1900, 1.0),
                        self.run(self.new, again, 1900, 1.0),
                        strict=True,
                    )
                ),
                families={each.digest: each.family for each in [*tasks, *again]},
            ),
            EVALUATION.gate,
        )
        promotion = Promotion(
            ordinal=1, pair=self.new, replaced=self.old, verdict=verdict.digest,
            reason="; ".join(verdict.reasons), at=self._at,
        )  # fmt: skip
        is_promoted = verdict.decision is Decision.PROMOTE
        self.ledger.add_verdict(verdict, promotion if is_promoted else None)
        return {"verdict": verdict.digest, "decision": verdict.decision.value}


def _covered(attempts: int, total: int) -> int:
    return int(total * attempts / (attempts + 40))
