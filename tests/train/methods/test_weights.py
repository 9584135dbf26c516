"""A row's ``weight`` in DPO and GRPO, against gradients derived anew in float64."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import LabelledExample
from tests.tiny import plain_logprob
from tests.train.made_up import labelled_pair, recipe_file
from train import critique_dpo, critique_grpo
from train.loop.checkpoint import trainable
from train.methods.dpo import PREFERENCES_FILE, DrawnPair, ScoredCritique
from train.methods.grpo import RightLabel
from train.methods.own_critiques import CritiqueRun, DrawnCritique, Policy, _Reports

WEIGHTS = (3.0, 1.0, 0.25, 0.0, 0.5)
BETA = 0.3
CRITIQUES = (("A is green.", "B"), ("B it is.", "No, A is."), ("Green!", "Brown? Brown."))


def rows_of(weights: Sequence[float] = WEIGHTS) -> list[LabelledExample]:
    return [
        labelled_pair(n, question=f"Which river {n}?", critique_tokens=6, weight=weight)
        for n, weight in enumerate(weights)
    ]


def write(folder: Path, backbone: str, rows: Sequence[LabelledExample], **sections: Any) -> str:
    """Write a recipe of one step over four rows, which nothing clips."""
    val = [labelled_pair(100 + n, question=f"Which lake {n}?", critique_tokens=6) for n in (0, 1)]
    given = {
        "optim": {"batch_size": 4, "max_grad_norm": 1e9},
        "run": {"log_every": 1},
        "critiques": {"drawn": 2, "max_tokens": 6, "micro_batch": 4},
    }
    return str(recipe_file(folder, backbone, {"train": rows, "val": val}, **given, **sections))


class Step:
    """Run of one step, from an adapter whose weights are not the first ones."""

    def __init__(self, script: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gradient: dict[str, torch.Tensor] = {}
        values: dict[str, torch.Tensor] = {}
        begin, check = _Reports.on_step_begin, _Reports.on_pre_optimizer_step

        def move(reports: Any, *arguments: Any, **more: Any) -> None:
            begin(reports, *arguments, **more)
            random = torch.Generator().manual_seed(0)
            for parameter in trainable(reports.run.tree_model).values():
                noise = torch.randn(parameter.shape, generator=random)
                parameter.data += 0.1 * noise

        def keep(reports: Any, *arguments: Any, **more: Any) -> None:
            check(reports, *arguments, **more)
            self.run: CritiqueRun = reports.run
            parameters = trainable(self.run.tree_model)
            self.gradient = {
                name: p.grad.double() for name, p in parameters.items() if p.grad is not None
            }
            values.update({name: p.detach().double() for name, p in parameters.items()})

        monkeypatch.setattr(_Reports, "on_step_begin", move)
        monkeypatch.setattr(_Reports, "on_pre_optimizer_step", keep)
        monkeypatch.setattr("train.run.finish_run", lambda *_: None)
        script.main(["--config", path])
        self.tree_model = self.run.tree_model.double().eval()
        for name, parameter in trainable(self.tree_model).items():
            parameter.data = values[name]

    @property
    def figures(self) -> dict[str, float]:
        """Figures that the run reports of the step."""
        [figures] = [entry for entry in self.run.progress.history if "train_loss" in entry]
        return figures

    def check(self, loss: torch.Tensor) -> None:
        """Compare a loss, made of the kept model, with what TRL made of it."""
        assert self.figures["train_loss"] == pytest.approx(loss.item(), rel=1e-4, abs=1e-6)
        parameters = trainable(self.tree_model)
        expected = torch.autograd.grad(loss, list(parameters.values()))
        size = max(gradient.abs().max().item() for gradient in expected)
        assert size > 1e-4
        for name, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(self.gradient[name], gradient, rtol=1e-3, atol=1e-3 * size)


def logprob(model: Any, encoder: Encoder, row: LabelledExample, critique: str) -> torch.Tensor:
    """Log-probability of a critique that the judge ended."""
    [prompt] = encoder.encode([(get_task(row.task), row.request())])
    before = (*prompt.prefix_ids, *prompt.suffix_ids, *encoder.text("<critique>"))
    answer = [*encoder.data(critique), *encoder.text("</critique>")]
    return plain_logprob(model, before, answer, {})


def write_pairs(folder: Path, rows: Sequence[LabelledExample]) -> dict[str, Any]:
    """Write the drawn critiques of rows; return the section of a recipe that names them."""
    drawn = [
        DrawnPair(
            key="",
            id=row.id,
            label=row.label,
            chosen=ScoredCritique(text=CRITIQUES[n % 3][0], is_finished=True, reward=0.0),
            rejected=ScoredCritique(text=CRITIQUES[n % 3][1], is_finished=True, reward=-1.0),
        )
        for n, row in enumerate(rows)
    ]
    file = folder / PREFERENCES_FILE
    file.write_text("".join(f"{line.model_dump_json()}\n" for line in drawn), encoding="utf-8")
    return {"beta": BETA, "preferences": str(file)}


@pytest.mark.parametrize("weights", [WEIGHTS, (0.5, 0.5, 0.5, 0.0, 0.5)])
def test_dpo_weighs_pairs(
    weights: Sequence[float], small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preferences that were drawn while a row still had a weight are left out with it."""
    rows = rows_of(weights)
    texts = {row.id: CRITIQUES[n % 3] for n, row in enumerate(rows)}
    recipe = write(tmp_path, small, rows, dpo=write_pairs(tmp_path, rows))
    step = Step(critique_dpo, recipe, monkeypatch)
    model, encoder = step.tree_model.backbone, step.run.policy.encoder
    losses = []
    for row in rows:
        both = [logprob(model, encoder, row, text) for text in texts[row.id]]
        with model.disable_adapter(), torch.no_grad():
            reference = [logprob(model, encoder, row, text) for text in texts[row.id]]
        margin = (both[0] - reference[0]) - (both[1] - reference[1])
        losses.append(-torch.nn.functional.logsigmoid(BETA * margin))
    weighed = torch.tensor(weights, dtype=torch.float64)
    step.check((torch.stack(losses) * weighed).sum() / weighed.sum())


def test_a_run_that_goes_on_takes_passes_of_as_many_pairs(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the pairs that are left all weigh the same: dropout depends on the pass."""
    sizes: list[int] = []

    def keep(_: CritiqueRun, trainer: Any) -> None:
        sizes.append(trainer.args.per_device_train_batch_size)

    monkeypatch.setattr("train.run.finish_run", lambda *_: None)
    monkeypatch.setattr(CritiqueRun, "fit", keep)
    rows = rows_of((3.0, 1.0, 1.0, 1.0, 1.0))
    recipe = write(tmp_path, small, rows, dpo=write_pairs(tmp_path, rows))
    for left in ([0, 1, 2, 3], [1, 2, 3, 4]):
        monkeypatch.setattr(CritiqueRun, "items_left", left)
        critique_dpo.main(["--config", recipe])
    assert sizes == [1, 1]


def test_grpo_weighs_critiques(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = [0.0, -1.0, -0.2, -0.9, -3.0, -0.1, -0.5, -0.6]
    drawn, weights, draw = list[DrawnCritique](), list[float](), Policy.draw

    def kept(policy: Policy, requests: Any, *arguments: Any) -> list[DrawnCritique]:
        critiques = [
            replace(critique, token_ids=critique.token_ids[: 2 + n % 5])  # of several lengths
            for n, critique in enumerate(draw(policy, requests, *arguments))
        ]
        drawn.extend(critiques)
        weights.extend(WEIGHTS[int(request.id)] for request in requests)
        return critiques

    monkeypatch.setattr(Policy, "draw", kept)
    monkeypatch.setattr(RightLabel, "__call__", lambda *_, **__: rewards)
    path = write(tmp_path, small, rows_of(), grpo={"beta": BETA})
    step = Step(critique_grpo, path, monkeypatch)
    assert 0.0 not in weights and len(set(weights)) == 4
    given = torch.tensor(rewards, dtype=torch.float64)
    means = given.view(-1, 2).mean(1).repeat_interleave(2)
    advantages = (given - means) / (given.std() + 1e-4)
    model, losses, counts = step.tree_model.backbone, [], []
    for critique, weight, advantage in zip(drawn, weights, advantages, strict=True):
        for end in range(len(critique.token_ids)):
            before = (*critique.prompt_ids, *critique.token_ids[:end])
            token = [critique.token_ids[end]]
            own = plain_logprob(model, before, token, {})
            with model.disable_adapter(), torch.no_grad():
                gap = plain_logprob(model, before, token, {}) - own
            gap = gap + own.detach() - own
            distance = gap.exp() - gap - 1
            ratio = (own - own.detach()).exp()  # of TRL's unbiased gradient of the divergence
            losses.append(weight * ratio * (BETA * distance - advantage))
            counts.append(weight)
    step.check(torch.stack(losses).sum() / sum(counts))
    assert step.figures["critique_tokens"] == len(losses) / len(drawn)


@pytest.mark.parametrize("script", [critique_dpo, critique_grpo])
def test_rows_without_any_weight_are_refused(
    script: Any, small: str, tmp_path: Path, refusal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)
    error = refusal(script, ["--config", write(tmp_path, small, rows_of([0.0] * 4))])
    assert "field 'weight'" in error
