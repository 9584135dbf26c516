"""The first hour on a GPU: its file of figures, its models with random weights, its made rows."""

from __future__ import annotations

import os
import platform
import random
import re
import subprocess
import time
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from data_prep.made.quick_scores import generate_examples
from judging.errors import CustosError, errors_at
from judging.files.records import decode_json, write_json
from judging.models.fetched import EMBEDDED, cache_folder
from judging.types import LabelledExample

ABSENT = "absent"
"""Value of a figure whose program or weights are not here."""
NOT_FINISHED = "not finished"
"""Measurement whose value is why its part did not come to an end."""
PEAK_TFLOPS = {
    **{"H100 PCIe": 756.0, "H100 NVL": 835.0, "H100": 989.4, "H200": 989.4, "A100": 312.0},
    **{"L40S": 362.05, "L40": 181.05, "RTX 4090": 165.2},
}
"""Peak in bfloat16 without sparsity, in TFLOP/s, by a part of the device's name; of several parts
that fit, the first counts. From NVIDIA's data sheets; H100 alone is the SXM5 module."""
PACKAGES = (
    *("torch", "transformers", "accelerate", "peft", "trl", "bitsandbytes", "pydantic", "fastapi"),
    *("datasets", "huggingface_hub", "tokenizers", "safetensors", "pytest"),
)


@dataclass(frozen=True)
class Figure:
    """A measured value."""

    measurement: str
    value: float | str
    unit: str = ""
    target: str = ""
    """What it must be: ``< 3``, ``>= 3`` or ``1 to 2``; empty if it is only reported."""

    @property
    def ok(self) -> bool | None:
        """Tell whether the value meets its target, ``None`` without one or without a number."""
        numbers = [float(text.replace(",", "")) for text in re.findall(r"[\d.,e-]+", self.target)]
        if self.measurement == NOT_FINISHED:
            return False
        if isinstance(self.value, str) or not numbers:
            return None
        if self.target.startswith("<"):
            return self.value < numbers[0]
        if self.target.startswith(">="):
            return self.value >= numbers[0]
        return numbers[0] <= self.value <= numbers[-1]


@dataclass(frozen=True)
class Machine:
    """The device that is measured."""

    device: str
    driver: str
    rehearsal: bool

    @classmethod
    def here(cls, *, rehearsal: bool) -> Machine:
        """Name the first GPU, which must be there, or the CPU for a rehearsal."""
        if rehearsal:
            return cls(f"rehearsal {platform.machine()}", "", rehearsal)
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        try:
            done = subprocess.run(query, capture_output=True, text=True, check=True)
            device, driver = done.stdout.splitlines()[0].rsplit(", ", 1)
        except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
            raise CustosError(
                "nvidia-smi names no GPU; '--rehearse' takes all steps on the CPU, in small"
            ) from None
        return cls(device, driver, rehearsal)

    @property
    def slug(self) -> str:
        """Return the name of the device for a file."""
        return re.sub(r"[^a-z0-9]+", "-", self.device.lower()).strip("-")

    @property
    def peak_tflops(self) -> float | None:
        """Return the device's peak in bfloat16, if it is known."""
        return next((peak for name, peak in PEAK_TFLOPS.items() if name in self.device), None)


class Book:
    """The figures of a machine, old ones too, in a file that is written anew with each of them."""

    def __init__(self, path: Path, machine: Machine) -> None:
        self.path, self.machine = path, machine
        self.figures: list[dict[str, Any]] = []
        self.done: list[list[Any]] = []
        """Step and name of every part that came to its end."""
        if path.exists():
            with errors_at(str(path)):
                self._read(decode_json(path.read_bytes()))

    def _read(self, content: Any) -> None:
        if content["device"] != self.machine.device:
            raise CustosError(
                f"holds the figures of {content['device']}, and this is {self.machine.device}; "
                "name another file in --out"
            )
        self.figures, self.done = content["figures"], content["done"]

    def clear(self, step: int, part: str) -> None:
        """Forget what a part measured, before it is measured anew."""
        self.done = [key for key in self.done if key != [step, part]]
        self.figures = [f for f in self.figures if (f["step"], f["part"]) != (step, part)]

    def add(self, step: int, part: str, figure: Figure, began: float) -> None:
        """Keep a figure of a part that began at a time; a rehearsal says nothing about targets."""
        is_judged = not self.machine.rehearsal or figure.measurement == NOT_FINISHED
        self.figures.append(
            {
                **{"step": step, "part": part, **asdict(figure)},
                **{"ok": figure.ok if is_judged else None},
                **{"seconds": round(time.monotonic() - began, 1), "driver": self.machine.driver},
                "versions": ", ".join(f"{name} {installed(name)}" for name in PACKAGES[:4]),
            }
        )
        self.write()

    def write(self) -> None:
        """Write the file, whole or not at all; its folder is made if it is missing."""
        on = {"device": self.machine.device, "rehearsal": self.machine.rehearsal}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {**on, "done": self.done, "figures": self.figures})

    def find(self, part: str, measurement: str) -> float | str | None:
        """Return what a part measured, if it did."""
        found = (f for f in self.figures if (f["part"], f["measurement"]) == (part, measurement))
        value: float | str | None = next((f["value"] for f in found), None)
        return value

    def number(self, part: str, measurement: str) -> float | None:
        """Return a number that a part measured, if it did."""
        value = self.find(part, measurement)
        return None if isinstance(value, str) else value


def installed(package: str) -> str:
    """Return the version of a package, or that it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT


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
