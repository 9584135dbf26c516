"""What the steps measure on: models of published shapes with random weights, made-up rows."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_prep.synthetic.text.generate import generate_examples
from experiments.gpu_hour.figures import Book
from judging.errors import CustosError
from judging.files.records import write_json
from judging.models.embedded import CHAT_TEMPLATE, EMBEDDED, cache_folder
from judging.types import LabelledExample

LARGE, SMALL = "Qwen/Qwen3-VL-4B-Instruct", "Qwen/Qwen2.5-VL-3B-Instruct"
"""Shapes of the models that train (that of the recipe) and that grade."""
REAL = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
"""Models with trained weights, measured where they are at hand."""
WORDS = (60, 220)
"""Least and most words of a made-up response: a row has about 300 tokens."""
_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>"),
)


@dataclass(frozen=True)
class Hour:
    """What every measurement is given."""

    book: Book
    folder: Path
    """Where runs, rows and pictures are written."""
    real: tuple[str, ...]
    """Models with trained weights: folders, or names of backbones."""

    @property
    def rehearsal(self) -> bool:
        """Return whether all is small, on the CPU."""
        return self.book.machine.rehearsal

    def size(self, real: int, rehearsed: int) -> int:
        """Return a number for a GPU, or the one that a rehearsal takes instead."""
        return rehearsed if self.rehearsal else real


def backbone(hour: Hour, name: str) -> str:
    """Return the backbone that a recipe names for a shape; in a rehearsal one of two layers."""
    use_tokenizer(hour)
    if not hour.rehearsal:
        return name
    folder = hour.folder / "shapes" / name.partition("/")[2]
    if not folder.is_dir():
        folder.mkdir(parents=True)
        write_json(folder / "config.json", _small_config(name))
    return str(folder)


def random_weights(hour: Hour, name: str) -> str:
    """Return a folder with random weights in a shape, which is made once."""
    from train.dry_run.random_checkpoint import random_checkpoint

    return str(random_checkpoint(backbone(hour, name)))


def _small_config(name: str) -> dict[str, Any]:
    """Return the configuration of a published checkpoint with few layers of few numbers."""
    from train.plan.published import published_config

    config: dict[str, Any] = published_config(name).to_dict()
    text, vision = config["text_config"], config["vision_config"]
    text.pop("layer_types", None)
    text |= {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    text |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    text |= {"head_dim": 16} if "head_dim" in text else {}
    text["rope_parameters"]["mrope_section"] = [2, 3, 3]
    vision |= {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64}
    vision |= {"out_hidden_size": 64}
    for key in ("fullatt_block_indexes", "deepstack_visual_indexes"):
        if key in vision:
            vision[key] = [1]
    return config


def use_tokenizer(hour: Hour) -> str:
    """See to a tokenizer for random weights without fetching one; return which it is."""
    from train.dry_run.random_checkpoint import REAL_TOKENIZER, TOKENIZER_VARIABLE

    made = hour.folder / "tokenizer"
    given = Path(os.environ.get(TOKENIZER_VARIABLE, REAL_TOKENIZER))
    if (given / "tokenizer.json").is_file():
        return "made" if given == made else "published"
    if (cache_folder() / EMBEDDED / "tokenizer.json").is_file():
        return "embedded"
    if not made.is_dir():
        _make_tokenizer(made)
    os.environ[TOKENIZER_VARIABLE] = str(made)
    return "made"


def _make_tokenizer(folder: Path) -> None:
    """Train a small tokenizer on made-up rows."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8192,
        special_tokens=list(_SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [row.model_dump_json() for row in generate_examples(2000, 1, "train", "open")]
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(_SPECIAL[1:]),
    )
    wrapped.chat_template = CHAT_TEMPLATE
    wrapped.save_pretrained(folder)


def made_rows(hour: Hour, count: int, seed: int = 0) -> list[LabelledExample]:
    """Make labelled rows whose responses are as long as those of a benchmark.

    Args:
        hour: The hour; rows of a rehearsal are short.
        count: Number of rows.
        seed: Rows of other seeds have other questions.
    """
    rows = list(generate_examples(count, seed, "train", "open"))
    if hour.rehearsal:
        return rows
    words = " ".join(" ".join(row.responses) for row in rows).split()
    rng = random.Random(seed)
    return [row.model_copy(update={"responses": (_response(row, words, rng),)}) for row in rows]


def _response(row: LabelledExample, words: Sequence[str], rng: random.Random) -> str:
    """Return a row's response, longer by a piece of the others'."""
    start = rng.randrange(len(words))
    piece = (words[start:] + list(words))[: rng.randint(*WORDS)]
    return f"{row.responses[0]} {' '.join(piece)}"


def one_device() -> str:
    """Return ``cuda``, or ``cpu`` where no GPU is visible.

    Raises:
        CustosError: If there is a GPU that PyTorch cannot use.
    """
    from judging.models.devices import use_device

    return use_device().type


def load_failure(name: str) -> str | None:
    """Return why a model with trained weights cannot be had; ``None`` if it can."""
    from judging.models.backbones import load_backbone

    try:
        load_backbone(name, weights=False)
    except CustosError as error:
        return str(error)
    return None
