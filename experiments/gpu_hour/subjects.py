"""What the steps measure on: models of published shapes with random weights, made-up rows."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_prep.made.quick_scores import generate_examples
from experiments.gpu_hour.figures import Book
from judging.files.records import write_json
from judging.models.fetched import EMBEDDED, cache_folder
from judging.types import LabelledExample

LARGE, SMALL = "Qwen/Qwen3-VL-4B-Instruct", "Qwen/Qwen2.5-VL-3B-Instruct"
"""Shapes of the models that train (that of the recipe) and that grade."""
REAL = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
"""Models with trained weights, measured where they are at hand."""
WORDS = (60, 220)
"""Least and most words of a made-up response: a row has about 300 tokens."""
SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>"),
]


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
    from train.launch.rehearsal import random_checkpoint

    return str(random_checkpoint(backbone(hour, name)))


def _small_config(name: str) -> dict[str, Any]:
    """Return the configuration of a published checkpoint with few layers of few numbers."""
    from train.launch.run_plan import published_config

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
    from train.launch.rehearsal import REAL_TOKENIZER, TOKENIZER_VARIABLE

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
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=8192, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    rows = generate_examples(2000, 1, "train", "open")
    tokenizer.train_from_iterator((row.model_dump_json() for row in rows), trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    ).save_pretrained(folder)


def made_rows(hour: Hour, count: int, seed: int = 0) -> list[LabelledExample]:
    """Make labelled rows, as long as those of a benchmark; short in a rehearsal."""
    rows = list(generate_examples(count, seed, "train", "open"))
    if hour.rehearsal:
        return rows
    words = " ".join(row.responses[0] for row in rows).split()
    rng = random.Random(seed)
    longer = []
    for row in rows:
        start = rng.randrange(len(words))
        piece = (words[start:] + words)[: rng.randint(*WORDS)]
        response = " ".join([row.responses[0], *piece])
        longer.append(row.model_copy(update={"responses": (response,)}))
    return longer
