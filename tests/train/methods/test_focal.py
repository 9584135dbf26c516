"""The focal objective, and that no objective has the host wait for a GPU."""

import math
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from judging.errors import FieldError
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from tests.gpu.host_waits import META, no_host_waits
from tests.train.made_up import analysed, encoded, example, examples, take_step_without_waits
from train.loop.objective import ModelRunner
from train.methods import methods
from train.methods.base import LossMethod
from train.methods.critique import TextObjective
from train.methods.focal import FocalObjective
from train.rows.rows import Rows, Supervision
from train.setup.run_log import RUN_LOG


@pytest.fixture(scope="module")
def rows(backbone: Backbone) -> Rows:
    """Two Correct, four Wrong; one row weighs double."""
    return encoded(backbone, [example(0, weight=2.0), *examples(5, start=1)])


def test_weights_come_from_the_training_rows(rows: Rows) -> None:
    objective = FocalObjective.for_examples(rows.examples, 1.0, 5.0, "sqrt")
    # Labels seen: numbers 0 and 3 right, 1, 2, 4, 5 wrong. w = sqrt(6/2), sqrt(6/4).
    correct, wrong = math.sqrt(3), math.sqrt(1.5)
    mean = (correct + wrong) / 2
    two = ("Correct", "Wrong")
    assert objective.classes == {(two, "Correct"): 0, (two, "Wrong"): 1}
    assert objective.loss.alpha.tolist() == pytest.approx([correct / mean, wrong / mean])
    clipped = FocalObjective.for_examples(rows.examples, 1.0, 1.1, "sqrt")
    assert clipped.loss.alpha.tolist() == pytest.approx([1.1, wrong / mean])
    plain = FocalObjective.for_examples(rows.examples, 1.0, 5.0, "none")
    assert plain.loss.alpha.tolist() == [1.0, 1.0]


def test_a_declared_label_without_rows_is_left_out_of_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others weigh as in the paper's formula over them; a line names label and rubric."""
    lines: list[str] = []
    monkeypatch.setattr(RUN_LOG, "write", lines.append)
    hard = [
        example(i).model_copy(update={"reference_mode": "all", "label": label})
        for i, label in enumerate(["Correct", "Wrong", "Wrong", "Wrong"])
    ]
    rows = [*hard, example(0, label="Correct")]
    objective = FocalObjective.for_examples(rows, gamma=1.0, t_max=5.0, weighting="sqrt")
    three, two = ("Correct", "Partial", "Wrong"), ("Correct", "Wrong")
    correct, wrong = math.sqrt(4 / 1), math.sqrt(4 / 3)
    weights = dict(zip(objective.classes, objective.loss.alpha.tolist(), strict=True))
    assert weights == {
        (three, "Correct"): pytest.approx(2 * correct / (correct + wrong)),
        (three, "Wrong"): pytest.approx(2 * wrong / (correct + wrong)),
        (two, "Correct"): 1.0,
    }
    assert sorted(objective.classes.values()) == [0, 1, 2]
    partial, wrong_alone = lines
    assert "hieval-qs/plain/all" in partial and "'Partial'" in partial
    assert "hieval-qs/plain/any" in wrong_alone and "'Wrong'" in wrong_alone


def test_rows_of_one_label_teach_nothing() -> None:
    with pytest.raises(FieldError) as error:
        FocalObjective.for_examples([example(0), example(3)], 1.0, 5.0, "sqrt")
    assert error.value.field == "data.train"
    FocalObjective.for_examples([example(0), example(3)], 1.0, 5.0, "none")


def test_the_sum_runs_over_each_labels_own_tokens(backbone: Backbone, rows: Rows) -> None:
    objective = FocalObjective.for_examples(rows.examples, 2.0, 5.0, "sqrt")
    size = len(rows), max(row.tree.num_slots for row in rows), len(backbone.tokenizer)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(size, generator=generator, dtype=torch.float64)
    expected, tokens = 0.0, 0.0
    end = backbone.tokenizer.convert_tokens_to_ids("<|im_end|>")
    for index, row in enumerate(rows):
        alpha = objective.loss.alpha[objective.classes[row.tree.labels, row.example.label]].item()
        ids = [*backbone.tokenizer.encode(row.example.label, add_special_tokens=False), end]
        path = row.tree.paths[row.target]
        assert [token for _, token in path] == ids, "the end token is scored"
        for slot, token in path:
            scores = logits[index, slot].tolist()
            log_p = scores[token] - math.log(sum(math.exp(score) for score in scores))
            expected -= row.example.weight * alpha * (1 - math.exp(log_p)) ** 2 * log_p
        tokens += row.example.weight * len(ids)
    assert objective.loss_sum(logits, list(rows), 0).item() == pytest.approx(expected, rel=1e-6)
    assert objective.denominator(*rows.weights(range(6))) == tokens


BY_LOSS = [name for name, method in methods().items() if issubclass(method, LossMethod)]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        *((name, {}) for name in BY_LOSS),
        ("joint", {"loss__negatives": "all", "loss__span": "suffix"}),
        ("joint", {"loss__negatives": "hardest", "loss__span": "suffix"}),
    ],
)
def test_no_loss_waits_for_the_device(
    name: str, keys: dict[str, str], small: str, tmp_path: Path
) -> None:
    method = methods()[name]
    assert issubclass(method, LossMethod)
    take_step_without_waits(method, small, tmp_path, **keys)


def test_no_batch_waits_for_the_device(small: str, tmp_path: Path) -> None:
    encoder = Encoder(load_backbone(small, weights=False), shows_all_pictures=True)
    rows = Rows(analysed(tmp_path, 4), Supervision(encoder), "train")
    batch, objective = rows.batch([0, 1]), TextObjective()
    accelerator = SimpleNamespace(device=META, autocast=nullcontext)
    runner = ModelRunner(lambda *_, **inputs: inputs, cast(Any, accelerator), cast(Any, None), 1)
    with no_host_waits():
        inputs = cast(Any, runner.outputs(batch, objective.inputs(batch.rows)))
    assert inputs["targets"].device == META
