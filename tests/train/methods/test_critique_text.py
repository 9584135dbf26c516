"""Critique training: what is supervised, what it costs, and that a judge reads it back."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from cli.main import app
from cli.train import _choose_judge
from judging.errors import CustosError
from judging.judge import Judge
from judging.models.adapters import add_adapter
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.engine import Sampling
from judging.scoring.packing import make_tree_batch
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import LabelledExample
from tests.conftest import Folders
from tests.tiny import Family, brute_force, reference_model, save_picture
from tests.train import made_up
from tests.train.made_up import critique_pair, recipe_file, write_split
from train import truthful_judge
from train.loop.accelerator import make_accelerator
from train.loop.objective import TextModel
from train.loop.trainer import Trainer
from train.methods.critique import TextObjective, TextSupervision, answer_tokens
from train.rows.rows import IndexedSplits, Rows
from train.setup.starting_adapter import with_adapter

PAIR = get_task("truthful-pair")


def _rows(backbone: Backbone, examples: list[LabelledExample]) -> Rows:
    return Rows(examples, TextSupervision(Encoder(backbone)), "train")


def test_the_answer_is_written_as_it_is_read(backbone: Backbone) -> None:
    encoder, example = Encoder(backbone), critique_pair(0)
    tokens = answer_tokens(PAIR, example, encoder)
    assert backbone.tokenizer.decode(tokens) == (
        "<critique>A says green.</critique><label>A</label><confidence>0.75</confidence><|im_end|>"
    )
    # The judge opens, draws, closes, opens the label and reads this tree.
    read = [
        *encoder.text("<critique>"), *encoder.data("A says green."),
        *encoder.text("</critique>"), *encoder.text("<label>"),
    ]  # fmt: skip
    assert tokens[: len(read)] == read
    tree = encoder.tree(PAIR.labels("plain"), "</label>")
    path = [token for _, token in tree.paths[tree.labels.index("A")]]
    assert tokens[len(read) : len(read) + len(path)] == path


def test_a_label_alone_and_a_missing_critique(backbone: Backbone) -> None:
    encoder = Encoder(backbone)
    plain = critique_pair(1, task="truthful-pure-label", critique=None, mode="score")
    tokens = answer_tokens(get_task("truthful-pure-label"), plain, encoder)
    assert backbone.tokenizer.decode(tokens) == "B<|im_end|>"
    with pytest.raises(CustosError, match=r"row '1': field 'critique': .* trains on one"):
        Rows([critique_pair(1, critique=None)], TextSupervision(encoder), "train")


def test_log_probabilities_and_gradients_without_full_logits(
    tiny_folder: str, tmp_path: Path
) -> None:
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    picture = save_picture(tmp_path / "a.png", 80, 60)
    examples = [critique_pair(0, images=(picture,)), critique_pair(1), critique_pair(3, weight=2.0)]
    rows = _rows(backbone, examples)
    objective = TextObjective()
    reference = reference_model(tiny_folder)
    expected = 0.0
    with torch.inference_mode():
        for row in rows:
            [prompt] = rows.prompts([row])
            answer = [token for _, token in row.tree.paths[0]]
            ids = prompt.prefix_ids + prompt.suffix_ids
            expected -= row.example.weight * brute_force(reference, ids, answer, prompt.vision)
    gradients = []
    for with_targets in (True, False):
        adapted = add_adapter(load_backbone(tiny_folder, dtype="float32").model, r=4, alpha=8)
        batch = make_tree_batch(
            rows.prompts(list(rows)), [row.tree for row in rows], backbone.tokenizer.pad_token_id
        )
        inputs = objective.inputs(list(rows))
        model = TextModel(adapted)
        if with_targets:
            outputs = model(batch, **inputs)
        else:
            logits = model(batch).log_softmax(-1)
            outputs = logits.gather(-1, inputs["targets"][..., None])[..., 0]
        loss = objective.loss_sum(outputs, list(rows), 0)
        assert loss.item() == pytest.approx(expected, rel=1e-5)
        loss.backward()
        gradients.append({n: p.grad for n, p in adapted.named_parameters() if "lora_B" in n})
    assert all(gradient.abs().max() > 1e-3 for gradient in gradients[1].values())
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    assert objective.denominator(*rows.weights(range(3))) == sum(
        row.example.weight * len(row.tree.paths[0]) for row in rows
    )


def _pairs(**ends: tuple[int, int]) -> dict[str, list[LabelledExample]]:
    return {split: [critique_pair(i) for i in range(*of_split)] for split, of_split in ends.items()}


def test_the_script_leaves_a_judge_that_writes_critiques(small: str, tmp_path: Path) -> None:
    path = recipe_file(
        tmp_path,
        small,
        _pairs(train=(0, 32), val=(100, 106)),
        data={"allow_overlap": True},
        adapter={"r": 8, "alpha": 16},
        optim={"token_budget": 800, "epochs": 3},
        run={"eval_every": 4},
    )
    truthful_judge.main(["--config", str(path)])
    history = json.loads((tmp_path / "run" / "history.json").read_text(encoding="utf-8"))
    watched = [entry["val_nll"] for entry in history if "val_nll" in entry]
    assert watched[-1] < 0.7 * watched[0]
    assert all("val_accuracy" in entry for entry in history if "val_nll" in entry)
    judge = Judge.load(str(tmp_path / "run"), device="cpu")
    assert judge.card
    assert judge.card.modes == {"truthful-pair/plain": ("critique",)}
    untold = critique_pair(7).request().model_copy(update={"mode": None})
    [verdict] = judge.grade([untold], sampling=Sampling(4, 0.0))
    assert verdict.label in ("A", "B", "None")
    assert verdict.passes[0].critique


@pytest.mark.parametrize(
    ("task", "family"),
    [
        ("truthful-pair", "qwen3_vl"),
        ("truthful-critique-score", "qwen2_5_vl"),
        ("truthful-pure-label", "qwen2_5_vl"),
    ],
)
def test_labels_are_judged_after_the_own_critique(
    task: str, family: Family, tiny_folders: Folders, tmp_path: Path
) -> None:
    """Each label of each row is scored by itself, by the library's model on plain tokens.

    Weights are for training: in a validation all rows count alike.
    """
    tiny_folder = tiny_folders(family)
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    pictures: dict[str, Any] = {"images": (save_picture(tmp_path / "a.png", 80, 60),)}
    changes: dict[str, Any] = {"task": task}
    if task == "truthful-critique-score":
        changes |= {"responses": ("green",), "confidence": None}
    if task == "truthful-pure-label":
        changes |= {"critique": None, "mode": "score"}
    labels, form = get_task(task).labels("plain"), get_task(task).critique
    encoder, reference = Encoder(backbone), reference_model(tiny_folder)
    examples, total, tokens = [], 0.0, 0
    for i in range(4):
        example = critique_pair(i, **changes, label=labels[0], **(pictures if i == 1 else {}))
        [prompt] = encoder.encode([(get_task(task), example)])
        ids, end = prompt.prefix_ids + prompt.suffix_ids, "<|im_end|>"
        critique_ids: tuple[int, ...] = ()
        if form:
            pieces = (form.opening, example.critique or "", form.closing, form.label_opening)
            critique_ids = tuple(token for piece in pieces for token in encoder.text(piece))
            end = form.label_closing
        scores = {
            label: brute_force(
                reference,
                ids + critique_ids,
                encoder.text(label) + encoder.text(end),
                prompt.vision,
            )
            for label in labels
        }
        ranked = sorted(labels, key=lambda label: -scores[label])
        label = ranked[0 if i < 3 else 1]
        examples.append(example.model_copy(update={"label": label, "weight": float(i)}))
        answer = answer_tokens(get_task(task), examples[-1], encoder)
        total -= brute_force(reference, ids, answer, prompt.vision)
        tokens += len(answer)

    rows = Rows(examples, TextSupervision(encoder, with_labels=True), "val")
    recipe = made_up.recipe(tmp_path)
    adapted = with_adapter(load_backbone(tiny_folder, dtype="float32"), recipe)
    splits, accelerator = IndexedSplits(rows, rows, {}), make_accelerator(recipe.run)
    learner = Trainer(recipe, adapted, splits, TextObjective(), accelerator, {})
    measured = learner.objective.measure(learner.runner, rows)
    assert measured.right == [True, True, True, False]
    assert measured.scores["accuracy"] == 0.75
    assert measured.scores["nll"] == pytest.approx(total / tokens, rel=1e-5)


TASK = "truthful-pure-label"


@pytest.fixture(scope="module")
def run(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folder of a judge that learned the labels of rows of ``truthful-pair``."""
    folder = tmp_path_factory.mktemp("pure_label")
    rows = _pairs(train=(0, 16), val=(100, 104))
    path = recipe_file(folder, small, rows, task=TASK, data={"allow_overlap": True})
    truthful_judge.main(["--config", str(path)])
    return folder / "run"


def test_it_is_evaluated_on_its_own_training_table(run: Path, tmp_path: Path) -> None:
    """Its rows are of ``truthful-pair``, so the option is needed, as the error without it says."""
    data, out = str(run.parent / "train.jsonl"), str(tmp_path)
    command = ["eval", str(run), "--data", data, "--out", out, "--no-zero-shot"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 1
    assert f"(--task {TASK})" in refused.output
    result = CliRunner().invoke(app, [*command, "--task", TASK])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["n"], report["coverage"]) == (16, 1.0)
    rows = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(row)["rubric"] for row in rows} == {f"{TASK}/plain"}


def test_a_run_that_goes_on_from_it_is_compared_under_its_task(run: Path, tmp_path: Path) -> None:
    new = shutil.copytree(run, tmp_path / "new")
    (new / "data").mkdir()
    write_split(new / "data" / "test.jsonl", _pairs(test=(200, 204))["test"])
    _choose_judge(run, new, 0.5, TASK)
    for name in ("before", "after"):
        lines = (new / "compared" / name / "verdicts.jsonl").read_text(encoding="utf-8")
        verdicts = [json.loads(line) for line in lines.splitlines()]
        assert [verdict["label"] is None for verdict in verdicts] == [False] * 4
