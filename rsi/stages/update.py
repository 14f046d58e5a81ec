"""Update: a LoRA is trained on what worked, and the successor is chosen on holdout tasks."""

from collections import Counter

from pydantic import JsonValue

from rsi.domain.contract import Contract
from rsi.domain.evaluation import Evaluation
from rsi.domain.generation import Generation, Stage
from rsi.domain.lora import Base, Lora, Model, Recipe, TrainingRun
from rsi.domain.rendering import plain, render
from rsi.domain.task import Split
from rsi.ports import Trained, TrainingJob
from rsi.stages.block import Planned, run_block, trial_seed
from rsi.stages.budget import is_spent
from rsi.stages.discovery import champion_of
from rsi.stages.draw import draw
from rsi.stages.events import Result, result, staged
from rsi.stages.finalists import holdout_scores
from rsi.stages.parts import Contender, Parts, contender, serve
from rsi.stages.solved import solved_trials, trajectory_of
from rsi.steps.curate import Curated, curate

PROBES = 32
"""Holdout tasks on which the trained and the served adapter are compared."""
HARVEST_SEED = 300
"""The harvest's trial seeds begin here."""


def update(parts: Parts, generation: Generation) -> None:
    """Leaves a dataset, a LoRA revision with its lineage, and the successor pair."""
    staged(parts, generation, Stage.UPDATE, lambda: _update(parts, generation))


def _update(parts: Parts, generation: Generation) -> Result:
    evaluation = parts.ledger.evaluation(generation.evaluation)
    parts.progress.stage("harvest", evaluation.update.harvest_tasks)
    base = champion_of(parts, generation)
    chosen = str(result(parts, generation, Stage.EXPANSION)["finalist"])
    finalist = contender(parts, base.model, parts.ledger.contract(chosen), base.chat)
    _harvest(parts, generation, evaluation, finalist)
    curated = _curated(parts, generation, evaluation, base.contract)
    parts.ledger.add_dataset(generation.number, curated.dataset)
    reason = _reason_to_skip(evaluation, curated, _training_base(parts, base.model))
    if reason:
        parts.progress.say(f"update: no training: {reason}")
        return {
            "outcome": "skipped",
            "reason": reason,
            "lora": None,
            "successor_pair": finalist.pair,
            **_told(curated),
        }
    run = _trained(parts, generation, evaluation, base, curated)
    field = _field(parts, base, finalist.contract, run)
    parts.progress.stage("successors", len(field) * evaluation.expansion.holdout_tasks)
    scores = holdout_scores(parts, generation, evaluation, "successors", field)
    best = max(range(len(field)), key=lambda place: (scores[place].share, -place))
    return {
        "outcome": "trained",
        "reason": "",
        "lora": run.lora,
        "successor_pair": field[best].pair,
        "successors": [
            {
                "pair": one.pair,
                "solved": score.solved,
                "trials": score.trials,
                "invalid": score.invalid,
            }
            for one, score in zip(field, scores, strict=True)
        ],
        **_told(curated),
    }


def _harvest(
    parts: Parts, generation: Generation, evaluation: Evaluation, finalist: Contender
) -> None:
    """Runs the finalist on further search tasks: each one it solves is an example more."""
    count = evaluation.update.harvest_tasks
    if count and not is_spent(parts, generation, evaluation.budget):
        tasks = draw(parts, generation, Split.SEARCH, count, "harvest")
        seed = trial_seed(generation, HARVEST_SEED)
        run_block(parts, generation, "harvest", [Planned(finalist, task, seed) for task in tasks])


def _curated(
    parts: Parts, generation: Generation, evaluation: Evaluation, contract: Contract
) -> Curated:
    trials = solved_trials(parts, generation.number)
    digests = sorted({trial.task for trial in trials})
    tasks = dict(zip(digests, parts.ledger.tasks(digests), strict=True))
    rule = evaluation.update
    return curate(
        trials,
        tasks,
        parts.ledger.split_of(digests),
        lambda trial: trajectory_of(parts, trial),
        contract,
        rule.per_family,
        rule.max_examples,
    )


def _reason_to_skip(evaluation: Evaluation, curated: Curated, base: Base) -> str:
    rule, count = evaluation.update, len(curated.dataset.examples)
    if base.format == "remote":
        return f"the weights of {base.name} are behind an address and can't be trained here"
    if not rule.enabled:
        return "the evaluation contract turns training off"
    if count < rule.min_examples:
        return f"{count} examples after curation; the evaluation wants {rule.min_examples}"
    return ""


def _told(curated: Curated) -> dict[str, JsonValue]:
    families = Counter(example.family for example in curated.dataset.examples)
    return {
        "dataset": curated.dataset.digest,
        "examples": len(curated.dataset.examples),
        "families": dict(sorted(families.items())),
        "filters": [count.model_dump(mode="json") for count in curated.filters],
    }


def _trained(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    base: Contender,
    curated: Curated,
) -> TrainingRun:
    """The generation's training run: the recorded one on the same dataset, or a new one."""
    for run in parts.ledger.training_runs(generation.number):
        if run.dataset == curated.dataset.digest:
            return run
    trained = parts.trainer.train(
        _job(parts, generation, evaluation, base, curated), parts.progress
    )
    for served in trained.bases:
        parts.ledger.add_base(served)
    parts.ledger.add_lora(trained.lora)
    run = _run_of(generation, curated, trained)
    parts.ledger.add_training_run(run)
    return run


def _job(
    parts: Parts,
    generation: Generation,
    evaluation: Evaluation,
    base: Contender,
    curated: Curated,
) -> TrainingJob:
    rule = evaluation.update
    recipe = Recipe(
        rank=rule.rank,
        alpha=rule.alpha,
        learning_rate=rule.learning_rate,
        epochs=rule.epochs,
        batch_size=rule.batch_size,
        max_steps=rule.max_steps,
        seconds=rule.seconds,
        seed=generation.seed,
    )
    holdout = draw(parts, generation, Split.HOLDOUT, evaluation.expansion.holdout_tasks)
    bare = plain(base.contract)
    return TrainingJob(
        base=_training_base(parts, base.model),
        slot=base.contract.model.slot,
        dataset=curated.dataset,
        recipe=recipe,
        parent=_parent(parts, base),
        probes=tuple(render(bare, task) for task in holdout[:PROBES]),
        probe_max_tokens=base.contract.model.sampling.max_tokens,
    )


def _training_base(parts: Parts, model: Model) -> Base:
    """The base whose weights are trained on: the one that the served file was derived from."""
    known = {base.digest: base for base in parts.ledger.bases()}
    base = known[model.base]
    while base.derived_from is not None:
        base = known[base.derived_from]
    return base


def _parent(parts: Parts, base: Contender) -> Lora | None:
    digest = base.model.loras.get(base.contract.model.slot)
    return parts.ledger.loras([digest])[0] if digest else None


def _run_of(generation: Generation, curated: Curated, trained: Trained) -> TrainingRun:
    return TrainingRun(
        generation=generation.number,
        dataset=curated.dataset.digest,
        recipe=trained.lora.recipe,
        parent=trained.lora.parent,
        lora=trained.lora.digest,
        steps=trained.steps,
        examples=len(curated.dataset.examples),
        first_loss=trained.first_loss,
        last_loss=trained.last_loss,
        losses=trained.losses,
        tokens=trained.tokens,
        elapsed_s=trained.elapsed_s,
        fidelity=trained.fidelity,
    )


def _field(parts: Parts, base: Contender, finalist: Contract, run: TrainingRun) -> list[Contender]:
    """Who may succeed: the new model under the plain, the old and the finalist contract, and
    the old model under the finalist contract; in the order that wins a tie."""
    model = _new_model(base, run)
    new_chat, old_chat = serve(parts, model, base.model)
    bare = plain(base.contract)
    if bare.digest != base.contract.digest:
        document = parts.contract_files.write(bare)
        parts.ledger.add_contract(bare, document.toml)
    contracts = {c.digest: c for c in (bare, base.contract, finalist)}
    field = [contender(parts, model, contract, new_chat) for contract in contracts.values()]
    if finalist.digest == base.contract.digest:
        return field
    return [*field, contender(parts, base.model, finalist, old_chat)]


def _new_model(base: Contender, run: TrainingRun) -> Model:
    """The base that loses least of the new adapter, with it in the contract's slot."""
    served = run.fidelity[0].base if run.fidelity else base.model.base
    loras = {**base.model.loras, base.contract.model.slot: run.lora}
    return Model(base=served, loras=loras)
