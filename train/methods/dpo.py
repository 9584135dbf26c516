"""Direct preference optimisation among critiques that the judge draws itself (by TRL).

The judge that the run starts from draws several critiques of every pair. They are ranked by the
log-probability that its label tree gives the right label after each, averaged over both orders of
the pair; the best and the worst are a preference. Rows need labels and no critiques. It runs in one
process.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel, Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from judging.errors import CustosError, FieldError
from judging.files.kept_work import KeptFile, KeptLine, Origin, locked
from judging.files.records import read_records
from judging.fingerprint import digest
from judging.progress import ProgressBar
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from judging.verdicts.critiques import CritiqueScorer
from train.methods.own_critiques import (
    JUDGED_AT_ONCE,
    CritiqueRun,
    CritiqueSection,
    OwnCritiqueRecipe,
    OwnCritiques,
    Policy,
)
from train.rows.data import RunSplits
from train.setup.recipe import Section
from train.tracking.throughput import PARTS

PREFERENCES_FILE = "preferences.jsonl"


class ScoredCritique(BaseModel):
    """A critique with its reward."""

    text: str
    is_finished: bool
    """True if the judge ended the critique, False if a limit cut it."""
    reward: float


class Preference(NamedTuple):
    """Two critiques of an example; the chosen one leads to the right label more surely."""

    example: LabelledExample
    chosen: ScoredCritique
    rejected: ScoredCritique


class DrawnPair(KeptLine):
    """A line of :data:`PREFERENCES_FILE`: the best and the worst critique of an example."""

    id: str
    label: str
    chosen: ScoredCritique | None = None
    """Critique of the highest reward; ``None`` if a rule decides the example without one."""
    rejected: ScoredCritique | None = None
    """Critique of the lowest reward; ``None`` likewise."""

    @property
    def origin(self) -> Origin:
        """Identify a line by the example's id and the key."""
        return self.id, self.key


class Drawing:
    """Drawing of critiques, of which the best and the worst of every example are kept."""

    def __init__(
        self, policy: Policy, critiques: CritiqueSection, seed: int, identity: Mapping[str, Any]
    ) -> None:
        self.policy, self.critiques, self.seed, self.identity = policy, critiques, seed, identity
        self._scorer = CritiqueScorer(policy, critiques.flip_penalty)

    def fill(self, file: KeptFile[DrawnPair], examples: Sequence[LabelledExample]) -> None:
        """Bring a file up to one line per example; what an earlier run drew is kept."""
        rng, number = random.Random(f"drawn/{self.seed}"), self.critiques.drawn
        seeds = [[rng.getrandbits(31) for _ in range(number)] for _ in examples]
        indices = range(len(examples))
        with ProgressBar() as bar:
            task = bar.add_task("drawing critiques", total=len(examples))
            for count in file.fill(
                lambda: indices,
                lambda index: (examples[index].id, self._key(examples[index])),
                lambda batch: self._draw([examples[i] for i in batch], [seeds[i] for i in batch]),
                batch=max(1, JUDGED_AT_ONCE // number),
            ):
                bar.update(task, completed=count)

    def _draw(
        self, examples: Sequence[LabelledExample], seeds: Sequence[Sequence[int]]
    ) -> Iterator[DrawnPair]:
        """Yield a line per example; ``seeds`` has one for each of its critiques."""
        number = self.critiques.drawn
        rows = [row for row in examples for _ in range(number)]
        drawn = self.policy.draw(
            [row.request() for row in rows], list(chain(*seeds)), self.critiques.temperature
        )
        scores = self._scorer.score(rows, [critique.text for critique in drawn])
        pairs = zip(drawn, scores, strict=True)
        for example in examples:
            scored = [
                ScoredCritique(
                    text=critique.text, is_finished=critique.is_finished, reward=score.reward
                )
                for critique, score in islice(pairs, number)
                if score
            ]
            yield DrawnPair(
                key=self._key(example),
                id=example.id,
                label=example.label,
                chosen=max(scored, key=lambda critique: critique.reward, default=None),
                rejected=min(scored, key=lambda critique: critique.reward, default=None),
            )

    def _key(self, example: LabelledExample) -> str:
        return digest({"drawing": self.identity, "example": example.model_dump(mode="json")})


def read_preferences(
    path: Path, examples: Sequence[LabelledExample], least_margin: float
) -> list[Preference]:
    """Read the preferences in a file that :class:`Drawing` filled.

    Lines without two different critiques, or with rewards that differ by less than
    ``least_margin``, are left out, as are those of examples of weight 0. Lines and examples are
    matched by id.
    """
    by_id = {example.id: example for example in examples}
    preferences = []
    for number, line in read_records(path, DrawnPair):
        example = by_id.get(line.id)
        if example is None or example.label != line.label:
            raise CustosError(
                f"{path}:{number}: no row to train on has the id '{line.id}' and the label "
                f"'{line.label}'; name the rows that the critiques were drawn of"
            )
        chosen, rejected = line.chosen, line.rejected
        if chosen is None or rejected is None or chosen.text == rejected.text:
            continue
        if example.weight and chosen.reward - rejected.reward >= least_margin:
            preferences.append(Preference(example, chosen, rejected))
    return preferences


def as_columns(preference: Preference, weight: float) -> dict[str, Any]:
    """Write a preference as a row of TRL's: the request as JSON, the critiques, what it counts.

    A closing tag follows critiques that the judge ended. The column of pictures stands even where
    there are none, because with it TRL leaves tokens to the collator.
    """
    example, chosen, rejected = preference
    form, request = get_task(example.task).critique, example.request()
    assert form is not None  # checked for all rows
    return {
        "prompt": request.model_dump_json(),
        "chosen": chosen.text + form.closing * chosen.is_finished,
        "rejected": rejected.text + form.closing * rejected.is_finished,
        "images": list(request.images),
        "weight": weight,
    }


class PreferenceCollator:
    """Collator that makes tensors of preferences, as TRL's own does, with the prompts of a judge.

    The texts of requests and critiques are data, never special tokens, as in judging.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Build the tensors of a batch: first all critiques that were chosen, then the others."""
        encoder = self.encoder
        requests = [JudgeRequest.model_validate_json(row["prompt"]) for row in rows]
        tasks = [get_task(request.task) for request in requests]
        prompts = encoder.encode(list(zip(tasks, requests, strict=True)))
        texts, masks, vision = [], [], []
        for column in ("chosen", "rejected"):
            for task, prompt, row in zip(tasks, prompts, rows, strict=True):
                assert task.critique is not None  # checked for all rows
                critique, closing, _ = row[column].partition(task.critique.closing)
                opening = encoder.text(task.critique.opening)
                before = [*prompt.prefix_ids, *prompt.suffix_ids, *opening]
                answer = [*encoder.data(critique), *encoder.text(closing)]
                texts.append(torch.tensor(before + answer))
                masks.append(torch.tensor([0] * len(before) + [1] * len(answer)))
                vision.append(prompt.vision)
        pad_id = encoder.backbone.tokenizer.pad_token_id
        input_ids = pad_sequence(texts, batch_first=True, padding_value=pad_id)
        lengths = torch.tensor([len(text) for text in texts])
        tensors = {
            "input_ids": input_ids,
            "attention_mask": (torch.arange(input_ids.shape[1]) < lengths[:, None]).long(),
            "completion_mask": pad_sequence(masks, batch_first=True),
            "weight": torch.tensor([row["weight"] for row in rows]),
        }
        if pictured := [pictures for pictures in vision if pictures]:
            for name in pictured[0]:
                tensors[name] = torch.cat([pictures[name] for pictures in pictured])
            image_id = encoder.backbone.model.config.image_token_id
            tensors["mm_token_type_ids"] = (input_ids == image_id).int()
        return tensors


class DpoSection(Section):
    """Direct preference optimisation (Rafailov et al., 2023)."""

    beta: float = Field(default=0.1, gt=0)
    """How strongly the judge is held to the one that it started from."""
    least_margin: float = Field(default=0.1, ge=0)
    """Least difference between the rewards of two critiques; pairs without one are left out."""
    preferences: Path | None = None
    """``preferences.jsonl`` of an earlier run over the same rows: its critiques are trained on, and
    none are drawn."""


class DpoRecipe(OwnCritiqueRecipe):
    """Recipe of DPO."""

    dpo: DpoSection = DpoSection()

    @property
    def files(self) -> dict[str, Path]:
        """List every file it reads, preferences among them."""
        path = self.dpo.preferences
        return super().files | ({str(path): path} if path else {})


class Dpo(OwnCritiques):
    """Trains a judge to prefer critiques that lead to the right label."""

    recipe_class = DpoRecipe
    script = "critique_dpo"
    default_recipe = "embedded/pair_dpo"

    def __init__(self, recipe: DpoRecipe, splits: RunSplits) -> None:
        super().__init__(recipe, splits)
        self._known = splits.train  # of any weight: critiques of all may have been drawn
        ids: set[str] = set()
        for row in splits.train:
            if row.id in ids:
                raise FieldError(
                    "id",
                    f"two rows of split 'train' have the id '{row.id}', and critiques are found by "
                    "it; give every row one of its own, or none",
                )
            ids.add(row.id)
        self.preferences: list[Preference] = []

    def draw_items(self, policy: Policy, identity: Mapping[str, Any]) -> int:
        """Draw critiques of the rows, if the recipe names none; keep those that differ enough."""
        recipe, train = self.recipe, self.splits.train
        path = recipe.dpo.preferences
        if path is None:
            path = recipe.run.output / PREFERENCES_FILE
            # The part of the run's identity that decides which critiques a row gets.
            of_drawing = (
                *("backbone", "adapter.", "critiques.", "run."),
                f"sha256.{recipe.adapter.init}",
            )
            depends_on = {
                key: value for key, value in identity.items() if key.startswith(of_drawing)
            }
            drawing = Drawing(policy, recipe.critiques, recipe.run.seed, depends_on)
            with locked(path), PARTS.measured("drawing"):
                drawing.fill(KeptFile(path, DrawnPair), train)
        least_margin = recipe.dpo.least_margin
        self.preferences = read_preferences(path, self._known, least_margin)
        if not self.preferences:
            raise FieldError("dpo.least_margin", f"{least_margin}: no two critiques differ so much")
        numbers = {row.id: number for number, row in enumerate(train)}
        rows = train.take([numbers[pair.example.id] for pair in self.preferences])
        self.splits = replace(self.splits, train=rows)
        return len(self.preferences)

    def trainer(self, run: CritiqueRun) -> Any:
        """Make TRL's trainer of preferences."""
        from datasets import Dataset
        from trl import DPOConfig, DPOTrainer

        class WeightedTrainer(DPOTrainer):  # type: ignore[misc]  # TRL has no types here
            """Weighs the mean loss of the pairs of a forward pass, which all weigh the same."""

            def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **more: Any) -> Any:
                weight = inputs.pop("weight").mean()
                return super().compute_loss(model, inputs, *arguments, **more) * weight

        run.tracker.note(f"{len(self.preferences)} rows with critiques that differ enough")
        policy, backbone = run.policy, run.policy.backbone
        pairs = [self.preferences[i] for i in run.items_left]
        weights = [pair.example.weight for pair in pairs]
        # Of all pairs, not of those left: a run that goes on takes the passes of one that was not
        # stopped, and so draws the same dropout.
        is_uniform = len({pair.example.weight for pair in self.preferences}) == 1
        micro_batch = self.recipe.critiques.micro_batch if is_uniform else 1
        # A step's loss is the mean over its pairs, so that weights must be 1 on average.
        size = self.recipe.optim.batch_size
        means = [sum(weights[i : i + size]) / size for i in range(0, len(weights), size)]
        return WeightedTrainer(
            model=backbone.model,
            args=DPOConfig(
                **run.settings(micro_batch),
                beta=self.recipe.dpo.beta,
                max_length=None,
                remove_unused_columns=False,
            ),
            data_collator=PreferenceCollator(policy.encoder),
            train_dataset=Dataset.from_list(
                [as_columns(pair, weights[i] / means[i // size]) for i, pair in enumerate(pairs)]
            ),
            # TRL takes a processor of pictures and text, or a tokenizer.
            processing_class=backbone.processor if backbone.reads_pictures else backbone.tokenizer,
            optimizers=run.optimizers(),
        )


METHOD = Dpo
