"""A judge as one merged checkpoint in a new folder, compared with the judge before it appears."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from judging.errors import CustosError
from judging.export.checkpoint import write_checkpoint
from judging.export.parity import Parity, compare, judge_scores
from judging.files.atomic import sync, write_text
from judging.judge import CALIBRATION_FILE, Judge
from judging.judge.card import CARD_FILE, JudgeCard, encoder_of, run_folder
from judging.judge.names import check_name
from judging.judge.notes import KNOWS_NOTHING
from judging.models.backbones import Backbone, Dtype, empty_model
from judging.tasks import get_task
from judging.types import JudgeRequest

JUDGE_FOLDER = "judge"
"""Subfolder of an export. In the export itself ``judge.json`` would ask for an adapter."""
PICTURES_FIRST = "Pictures come before the text of the user's turn. "
_JUDGE_FILES = (CARD_FILE, CALIBRATION_FILE, "recipe.yaml", "report.json", "README.md")


@dataclass(frozen=True)
class Export:
    """Facts about an exported judge."""

    name: str
    backbone: str
    dtype: str
    num_bytes: int
    parity: Parity
    random_weights: bool


def export_merged(
    source: str,
    folder: Path,
    requests: Sequence[JudgeRequest] = (),
    *,
    device: str | None = None,
    dtype: Dtype | None = None,
) -> Export:
    """Write a judge as a checkpoint that transformers and vLLM load without custos.

    The folder appears whole or not at all.

    Args:
        source: Run folder or name of a shipped judge.
        folder: Folder to make.
        requests: Requests on which the checkpoint is compared with the judge; default one for
            every rubric of the judge, and one with a picture.
        device: Torch device to compare on; default CUDA if there is one.
        dtype: Format of the weights; default the one that the judge runs in.

    Raises:
        CustosError: If there is no such judge, the folder exists, the judge does not take a
            request, or the checkpoint does not score as the judge does.
        OSError: If the folder cannot be written, as on a full disk.
    """
    run = run_folder(source)
    if run is None:
        check_name(source)
        raise CustosError(
            f"judge '{source}': a model without an adapter, so that there is nothing to merge; "
            f"name a run folder or one of 'custos judges'"
        )
    with _new_folder(folder) as partial:
        judge = Judge.load(source, device=device, dtype=dtype)
        card, name = judge.card, judge.name
        assert card is not None  # a run folder has one
        with tempfile.TemporaryDirectory() as drawn:
            picture = Path(drawn) / "picture.png" if judge.backbone.reads_pictures else None
            requests = requests or example_requests(card, picture)
            requests = [judge.resolve(request) for request in requests]
            expected = judge_scores(judge, requests)
            model, weights_dtype = judge.backbone.model, str(judge.engine.numerics["dtype"])
            model_device = model.device
            shell = judge.backbone.with_model(empty_model(model.config))
            del judge, model  # two models need not be in memory at once
            write_checkpoint(shell, run, weights_dtype, partial)
            parity = compare(
                partial,
                expected,
                requests,
                card=card,
                device=model_device,
            )
        parity.check()
        (partial / JUDGE_FOLDER).mkdir()
        for file in _JUDGE_FILES:
            if (run / file).is_file():
                shutil.copyfile(run / file, partial / JUDGE_FOLDER / file)
        write_text(
            partial / "README.md", _readme(folder.name, name, card, shell, weights_dtype, parity)
        )
        num_bytes = sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
    return Export(name, card.backbone, weights_dtype, num_bytes, parity, card.random_weights)


def example_requests(card: JudgeCard, picture: Path | None) -> list[JudgeRequest]:
    """Return a request for every rubric of a judge, and the first again with a picture.

    Args:
        card: Card of the judge.
        picture: File to draw the picture to; ``None`` for no picture.
    """
    from PIL import Image

    rows = [
        get_task(task).rows_by_rubric()[rubric]
        for task, rubrics in card.tasks.items()
        for rubric in rubrics
    ]
    if picture:
        Image.radial_gradient("L").convert("RGB").save(picture)
        rows.append({**rows[0], "images": [str(picture)]})
    return [JudgeRequest.model_validate(row) for row in rows]


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that gets its name when the block ends without an error.

    Raises:
        CustosError: If there is something of this name.
    """
    _check_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield partial
        for path in (*partial.rglob("*"), partial):
            path.chmod(0o755 if path.is_dir() else 0o644)  # temporary ones are their owner's alone
            sync(path)
        _check_free(folder)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(folder.parent)


def _check_free(folder: Path) -> None:
    if os.path.lexists(folder):
        raise CustosError(f"{folder}: exists already; name a new folder, or remove this one")


def _readme(
    title: str, name: str, card: JudgeCard, shell: Backbone, dtype: str, parity: Parity
) -> str:
    """Return what the folder is and how to load it."""
    task = get_task(next(iter(card.tasks)))
    rubric = card.tasks[task.name][0]
    request = JudgeRequest.model_validate(task.rows_by_rubric()[rubric])
    [prompt] = encoder_of(shell, card).encode([(task, request)])
    turns = [{"role": turn.role, "content": turn.text} for turn in prompt.messages]
    tasks = ", ".join(f"{key} ({', '.join(names)})" for key, names in card.tasks.items())
    model_class, reader = ("AutoModelForImageTextToText", "AutoProcessor")
    if not shell.reads_pictures:
        model_class, reader = ("AutoModelForCausalLM", "AutoTokenizer")
    begins = f"`{task.critique.opening}`, its critique" if task.critique else "its label"
    lines = [
        f"# {title}",
        "",
        f"The judge `{name}` for {tasks}: the weights of `{card.backbone}` (version "
        f"{card.backbone_version}) with the judge's adapter merged into them, in {dtype}.",
        "",
        *([f"**{KNOWS_NOTHING.capitalize()}.**", ""] if card.random_weights else []),
        f"Licence: that of `{card.backbone}`, for these weights are made from it.",
        "",
        "```python",
        f"from transformers import {model_class}, {reader}",
        "",
        f'model = {model_class}.from_pretrained("{title}", dtype="{dtype}")',
        f'{reader.removeprefix("Auto").lower()} = {reader}.from_pretrained("{title}")',
        "```",
        "",
        "```sh",
        f"vllm serve {title} --dtype {dtype}",
        "```",
        "",
        f"The judge was trained on conversations like this one (rubric {task.name}/{rubric}). "
        f"{PICTURES_FIRST if shell.reads_pictures else ''}The answer begins with {begins}; the "
        f"labels are {', '.join(task.labels(rubric))}.",
        "",
        "```json",
        json.dumps(turns, indent=1, ensure_ascii=False),
        "```",
        "",
        f"On {parity.num_rows} rows the log-probabilities of all labels through transformers "
        f"({parity.model_class}, float32) are at most {parity.largest:.1e} nats from "
        f"those of custos.",
        "",
        f"`{JUDGE_FOLDER}/` holds the judge's card and, where it has them, its calibration, recipe "
        f"and report. The probabilities of this checkpoint are not calibrated: custos applies "
        f"`{CALIBRATION_FILE}` after the model.",
        "",
    ]
    return "\n".join(lines)
