"""A trainer that learns nothing, at once: its adapter is named by what it would be trained on."""

from collections.abc import Sequence

from rsi.domain.lora import Base, Fidelity, Lora
from rsi.errors import TrainerError
from rsi.ports import Blobs, Progress, Trained, TrainingJob


class FakeTrainer:
    """Gives one adapter for each (dataset, recipe, parent), and stores two blobs for it."""

    def __init__(self, blobs: Blobs, bases: Sequence[Base] = ()) -> None:
        self._blobs = blobs
        self._bases = tuple(bases)
        self.jobs: list[TrainingJob] = []

    def train(self, job: TrainingJob, report: Progress) -> Trained:
        self.jobs.append(job)
        if not job.dataset.examples:
            raise TrainerError("The dataset is empty: there is nothing to learn from.")
        parent = job.parent.digest if job.parent else ""
        name = f"{job.dataset.digest} {job.recipe.model_dump_json()} {parent}"
        steps = job.recipe.max_steps
        losses = tuple(2.0 / (1 + step) for step in range(steps))
        report.stage("train", steps)
        report.advance(steps)
        lora = Lora(
            digest=self._blobs.put(f"adapter {name}".encode()),
            base=job.base.digest,
            slot=job.slot,
            dataset=job.dataset.digest,
            recipe=job.recipe,
            parent=job.parent.digest if job.parent else None,
            source=self._blobs.put(f"source {name}".encode()),
        )
        bases = self._bases or (job.base,)
        return Trained(
            lora=lora,
            bases=bases,
            steps=steps,
            first_loss=losses[0],
            last_loss=losses[-1],
            losses=losses,
            tokens=sum(len(example.completion.split()) for example in job.dataset.examples),
            elapsed_s=0.0,
            fidelity=tuple(
                Fidelity(base=base.digest, prompts=len(job.probes), agreement=1.0, changed=1.0)
                for base in bases
            ),
        )
