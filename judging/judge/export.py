"""A judge as one merged checkpoint in a new folder, compared with the judge before it appears."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from judging.errors import CustosError
from judging.files.atomic import whole_folder, write_text
from judging.files.pictures import PixelLimits
from judging.files.records import write_json
from judging.judge import CALIBRATION_FILE, Judge
from judging.judge.card import CARD_FILE, JudgeCard, check_name, encoder_of, run_folder
from judging.judge.notes import KNOWS_NOTHING
from judging.models.adapters import weight_changes
from judging.models.backbones import Backbone, Dtype, empty_model, on_device
from judging.models.checkpoints import (
    CONFIG,
    INDEX,
    MODEL_CLASSES,
    read_object,
    stored_weights,
    weight_files,
)
from judging.models.fetched import EMBEDDED_2, vision_weights
from judging.models.processors import IMAGE_FILES, load_processor
from judging.scoring.ask_model import make_ordered_prompts
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import get_task
from judging.types import END_TOKEN, JudgeRequest

_PUBLISHED = ("*.json", "*.jinja", "*.txt", "LICENSE*", "NOTICE*")


def write_checkpoint(backbone: Backbone, adapter: Path, dtype: str, folder: Path) -> None:
    """Write a backbone's checkpoint with the adapter of a run folder merged into its weights.

    Weights keep the names and the files that the backbone was published with. Its other files are
    copied as they are, but for the format of the weights in ``config.json`` and the limits on
    pictures of its preprocessor.
    """
    source = Path(backbone.model.config.name_or_path)
    _write_weights(backbone, source, adapter, dtype, folder)
    for file in sorted(file for pattern in _PUBLISHED for file in source.glob(pattern)):
        if file.is_file() and file.name not in (INDEX, CARD_FILE):
            shutil.copyfile(file, folder / file.name)
    config = read_object(source / CONFIG)
    for part in (config, config.get("text_config"), config.get("vision_config")):
        for key in ("dtype", "torch_dtype"):
            if isinstance(part, dict) and key in part:
                part[key] = dtype
    write_json(folder / CONFIG, config)
    for name in IMAGE_FILES:
        if (folder / name).is_file():
            content = read_object(folder / name)
            _set_pixels(content, backbone.pixels)
            write_json(folder / name, content)


def _write_weights(
    backbone: Backbone, source: Path, adapter: Path, dtype: str, folder: Path
) -> None:
    """Write the weights file by file; the adapter is added as in :meth:`Judge.load`."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    target = getattr(torch, dtype)
    changes = weight_changes(empty_model(backbone.model.config), adapter)
    replaced = vision_weights() if backbone.name == EMBEDDED_2 else None
    weights = stored_weights(source, target, changes, replaced)
    weight_map: dict[str, str] = {}
    total_size = 0
    for file in weight_files(source):
        with safe_open(file, "pt") as stored:
            names = list(stored.keys())
        tensors = {}
        for name in names:
            tensor = weights.pop(name)[:]  # so that a merged weight is freed once it is written
            tensors[name] = tensor.to(target) if tensor.is_floating_point() else tensor
        weight_map |= dict.fromkeys(names, file.name)
        total_size += sum(tensor.nbytes for tensor in tensors.values())
        save_file(tensors, folder / file.name, metadata={"format": "pt"})
    if (source / INDEX).is_file():
        index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
        write_json(folder / INDEX, index)


def _set_pixels(content: dict[str, Any], limits: PixelLimits) -> None:
    """Set the limits on pictures in the configuration of an image processor."""
    images: dict[str, Any] = content.get("image_processor", content)
    about_pictures = {"size", "min_pixels", "image_mean", "patch_size"}
    if images is content and not about_pictures & content.keys():
        return  # a processor's file that leaves pictures to another file
    images["size"] = {"shortest_edge": limits.min_pixels, "longest_edge": limits.max_pixels}
    images |= {key: value for key, value in limits._asdict().items() if key in images}


_LARGEST = 1e-3
"""Nats that two ways to compute the same may differ by in float32, at the least likely label."""

Scores = list[list[float]]
"""Log-probability of every label after every prompt."""


@dataclass(frozen=True)
class Parity:
    """The distance between the scores of an exported checkpoint and the judge's."""

    num_rows: int
    num_scores: int
    largest: float
    """Largest difference of two log-probabilities, in nats."""
    model_class: str
    """Class of transformers that the checkpoint was loaded as."""

    def check(self) -> None:
        """Raise ``CustosError`` if the difference is larger than rounding explains."""
        if not self.largest <= _LARGEST:
            raise CustosError(
                f"the merged weights do not score as the judge does: {self.largest:.2g} nats apart "
                f"in float32; nothing was written"
            )


def judge_scores(judge: Judge, requests: Sequence[JudgeRequest]) -> Scores:
    """Score the labels of resolved requests with the judge's own engine, from now on in float32."""
    on_device(judge.backbone.model.float(), judge.backbone.model.device)
    scores: Scores = []
    for prompts, tree in _prompts(judge.encoder, requests):
        for result in judge.engine.score(prompts, tree):
            if isinstance(result, CustosError):
                raise result
            scores.append(list(result))
    return scores


def compare(
    folder: Path,
    expected: Scores,
    requests: Sequence[JudgeRequest],
    *,
    card: JudgeCard,
    device: Any,
) -> Parity:
    """Score requests through transformers in float32, on prompts that the exported files encode."""
    import torch
    import transformers

    model_class = getattr(transformers, MODEL_CLASSES[read_object(folder / CONFIG)["model_type"]])
    model = model_class.from_pretrained(str(folder), dtype=torch.float32)
    model = model.to(device).eval()
    processor = load_processor(folder, model.config.model_type)
    encoder = encoder_of(Backbone(str(folder), "", model, processor), card)
    actual = [
        [_plain_score(model, prompt, [token for _, token in path]) for path in tree.paths]
        for prompts, tree in _prompts(encoder, requests)
        for prompt in prompts
    ]
    return Parity(
        num_rows=len(requests),
        num_scores=sum(map(len, actual)),
        largest=largest_difference(expected, actual),
        model_class=type(model).__name__,
    )


def largest_difference(expected: Scores, actual: Scores) -> float:
    """Find the largest difference of two log-probabilities, in nats; nan if one is nan."""
    pairs = zip(chain.from_iterable(expected), chain.from_iterable(actual), strict=True)
    return float(np.max([abs(one - other) for one, other in pairs]))  # max would pass over a nan


def _prompts(
    encoder: Encoder, requests: Sequence[JudgeRequest]
) -> Iterator[tuple[list[EncodedPrompt], LabelTree]]:
    """Yield the prompts of each request up to its label, in every order, and its label tree."""
    for request in requests:
        task = get_task(request.task)
        ordered, errors = make_ordered_prompts({0: request}, task, encoder)
        for error in errors.values():
            raise error
        prompts, closing = [each.prompt for each in ordered], END_TOKEN
        if form := task.critique:
            opening, closing = encoder.text(form.label_opening), form.label_closing
            prompts = [prompt.extended(opening) for prompt in prompts]
        yield prompts, encoder.tree(task.labels(task.rubric(request)), closing)


def _plain_score(model: Any, prompt: EncodedPrompt, label: list[int]) -> float:
    """Return the log-probability of a label from one plain pass over prompt and label."""
    import torch

    start = len(prompt.prefix_ids) + len(prompt.suffix_ids)
    ids = torch.tensor([[*prompt.prefix_ids, *prompt.suffix_ids, *label]], device=model.device)
    vision = {name: tensor.to(model.device) for name, tensor in prompt.vision.items()}
    if vision:
        vision["mm_token_type_ids"] = (ids == model.config.image_token_id).int()
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, **vision).logits[0, start - 1 : -1]
    logprobs = logits.float().log_softmax(-1)
    return float(sum(logprobs[index, token] for index, token in enumerate(label)))


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
    dtype: Dtype = "bfloat16",
) -> Export:
    """Write a judge as a checkpoint that transformers and vLLM load without custos.

    The folder appears whole or not at all.

    Args:
        source: Run folder or name of a shipped judge.
        folder: Folder to make.
        requests: Requests on which the checkpoint is compared with the judge; default one for
            every rubric of the judge, and one with a picture.
        device: Torch device to compare on; default CUDA if there is one.
        dtype: Format of the weights; default the one that judges run in.

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
    _check_free(folder)
    with whole_folder(folder) as partial:
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
            parity = compare(partial, expected, requests, card=card, device=model_device)
        parity.check()
        (partial / JUDGE_FOLDER).mkdir()
        for file in _JUDGE_FILES:
            if (run / file).is_file():
                shutil.copyfile(run / file, partial / JUDGE_FOLDER / file)
        write_text(
            partial / "README.md", _readme(folder.name, name, card, shell, weights_dtype, parity)
        )
        num_bytes = sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
        _check_free(folder)  # it may have been made meanwhile
    return Export(name, card.backbone, weights_dtype, num_bytes, parity, card.random_weights)


def example_requests(card: JudgeCard, picture: Path | None) -> list[JudgeRequest]:
    """Make a request for every rubric of a judge, and one with a picture drawn to a file."""
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


def _check_free(folder: Path) -> None:
    if os.path.lexists(folder):
        raise CustosError(f"{folder}: exists already; name a new folder, or remove this one")


def _readme(
    title: str, name: str, card: JudgeCard, shell: Backbone, dtype: str, parity: Parity
) -> str:
    """Tell what the folder is and how to load it."""
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
