"""Recipes: one YAML file per experiment, typed, closed, validated once.

The name ``embedded/demo`` stands for ``recipes/embedded/demo.yaml`` here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from data_prep.tables.mapping import TableMapping, read_mapping
from data_prep.tables.source import open_table
from judging.errors import CustosError, FieldError
from judging.field_text import default_text, meaning, type_text
from judging.files.opening import load_yaml
from judging.judge.card import run_folder
from judging.models.adapters import ADAPTER_FILE, ALL_MODULES, Module, Quantization
from judging.models.backbones import Dtype
from judging.tasks import task_names
from judging.types import Split

TrackerName = Literal["tensorboard", "wandb", "mlflow"]


class Section(BaseModel):
    """A closed, immutable part of a recipe."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _in_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str | Path) else value


def _named_once(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Raise ``ValueError`` if a file is named twice, by whatever paths."""
    first: dict[Path, Path] = {}
    for path in paths:
        same = first.setdefault(path.resolve(), path)
        if same is not path:
            other = "" if str(same) == str(path) else f", as {same} and {path}"
            raise ValueError(
                f"{path} is given twice{other}, so that its rows would count double; name it once "
                "('custos prep mix' takes a number of rows of each data set)"
            )
    return paths


Files = Annotated[tuple[Path, ...], AfterValidator(_named_once)]
"""Files whose rows are taken together, each named once."""


class DataSection(Section):
    """Labelled splits, as ``custos prep`` writes them, or tables of any kind (see ``mapping``)."""

    train: Annotated[Files, BeforeValidator(_in_tuple)] = Field(min_length=1)
    """One file or more, each once, trained on together."""
    val: Path | None = None
    """Scored during training; selects the best adapter. None: a part of ``train``, with whole
    questions, is left out of training for it."""
    cal: Path | None = None
    """Fits the calibration; never used for selection."""
    test: Path | None = None
    """Reported on once, at the end."""
    mapping: TableMapping | None = None
    """Which columns hold our fields, and what the labels of the files mean; or the path of a
    ``mapping.yaml`` with these keys. Null: the files have our shape."""
    votes: Literal["most", "shares"] = "most"
    """Of a row that several people labelled, train on the label that most of them gave, or on every
    label that somebody gave with its share of the votes, as a soft label. A row whose label is
    another one, such as a correction, keeps it, and other splits keep the label that most gave."""
    limit: int | None = Field(default=None, gt=0)
    """Train on only the first ``limit`` rows of each file."""
    val_limit: int | None = Field(default=None, gt=0)
    """Validate on only the first ``val_limit`` rows."""
    exclude_answerer: str | None = None
    """Leave this ``metadata.answerer`` out of train, val and cal, and test on it alone."""
    allow_overlap: bool | tuple[tuple[Split, Split], ...] = False
    """Whether splits may share rows or questions; or the pairs of splits that may, such as
    ``[[train, val]]``. The model card names what they share."""

    @field_validator("mapping", mode="before")
    @classmethod
    def _mapping_file(cls, mapping: Any) -> Any:
        return read_mapping(Path(mapping)) if isinstance(mapping, str | Path) else mapping


class AdapterSection(Section):
    """LoRA on the text tower and, if asked for, on the vision merger."""

    r: int = Field(default=64, gt=0)
    """Rank of the LoRA matrices."""
    alpha: int = Field(default=64, gt=0)
    """LoRA scale; the adapter counts ``alpha / r`` times."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout on the input of the LoRA matrices."""
    modules: tuple[Module, ...] = ALL_MODULES
    """Projections of each layer that get LoRA matrices."""
    rslora: bool = False
    """Count the adapter ``alpha / sqrt(r)`` times instead (rsLoRA), which suits high ranks."""
    dora: bool = False
    """Train the norm of each row of the weights apart from its direction (DoRA). Slower."""
    merger: bool = False
    """Put LoRA matrices also on the vision merger, which makes tokens of a picture. The rows need
    pictures, and one process trains."""
    init: Path | None = None
    """Run folder or shipped judge whose adapter to start from, instead of a fresh one."""

    @property
    def init_folder(self) -> Path | None:
        """Find the folder that ``init`` names: a run folder here, or a shipped judge's."""
        if self.init is None or self.init.is_dir():
            return self.init
        return run_folder(str(self.init)) or self.init


class OptimSection(Section):
    """AdamW with warm-up and decay."""

    optimizer: Literal["adamw", "paged_adamw_8bit"] = "adamw"
    """``paged_adamw_8bit``: AdamW whose moments take 8 bits and, on a GPU that is full, move to the
    memory of the machine. It needs bitsandbytes (``pip install bitsandbytes``)."""
    lr: float = Field(gt=0)
    """Highest learning rate, reached after the warm-up."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """Course of the learning rate after the warm-up."""
    warmup_ratio: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the learning rate rises from 0."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient of a step; larger ones are scaled down."""
    epochs: int = Field(default=1, gt=0)
    """Passes over the training rows."""
    max_steps: int | None = Field(default=None, gt=0)
    """Stop after this many optimizer steps, even if ``epochs`` would take more."""
    batch_size: int = Field(default=16, gt=0)
    """Rows per optimizer step over all processes."""
    token_budget: int = Field(default=4096, gt=0)
    """Most tokens per forward pass of one process, in training and validation: padding and pictures
    count; the instruction counts where each row reads its own, as in processes that share a model.
    Gradients of several passes are added up: memory depends on it, the judge does not."""
    whole_questions: bool = False
    """Shuffle questions, not rows, so that a batch reads a question once for all its responses.
    Rows with pictures are kept together by their group instead."""


class RunSection(Section):
    """The folder, the seed and the precision of a run, its validations and its limits."""

    output: Path
    """Run folder: checkpoints, log and, at the end, the judge."""
    seed: int = 0
    """Seed of the fresh adapter, the order of the rows and what else is drawn."""
    precision: Literal["bf16", "fp32"] = "bf16"
    """``bf16``: backbone rounded to bfloat16, adapter in float32, autocast. A CPU without bfloat16
    instructions computes everything in float32."""
    quantization: Quantization | None = None
    """``nf4``: the linear layers of the frozen text tower in 4 bits, quantised doubly (QLoRA). The
    finished judge is merged into the weights as they are. It needs bitsandbytes
    (``pip install bitsandbytes``). Null: as ``precision`` says."""
    workers: int | None = Field(default=None, ge=0)
    """Processes that read and encode rows ahead of the model, for each training process; 0: none.
    None: 0 on a CPU, whose cores the model uses, else the cores that are left, at most 4."""
    gradient_checkpointing: Literal[True, False, "auto"] = "auto"
    """Keep only the input of each layer for the gradient, and compute the rest again: less memory,
    more time. ``auto``: where a step without it would, as planned, fill more than nine tenths of
    the memory; never for small backbones on a CPU or where critiques are drawn. ``train.log`` and
    the ``recipe.yaml`` of the run say what was decided."""
    response_budget: int = Field(default=1024, gt=0)
    """Most tokens of one response; longer ones lose their middle."""
    min_pixels: int | None = Field(default=None, ge=1024)
    """Pictures of fewer pixels are scaled up. None: the backbone's own limit."""
    max_pixels: int | None = Field(default=None, ge=1024)
    """Pictures of more pixels are scaled down, here and wherever the judge runs. None: the
    backbone's own limit, at most 1,048,576."""
    log_every: int = Field(default=10, gt=0)
    """Steps between two reports of loss and speed."""
    trackers: Annotated[tuple[TrackerName, ...], BeforeValidator(_in_tuple)] = ("tensorboard",)
    """Where reports go beside the screen and ``metrics.jsonl``: any of ``tensorboard``, ``wandb``
    (offline unless WANDB_MODE says otherwise) and ``mlflow`` (files unless MLFLOW_TRACKING_URI
    names a server). All write into the run folder."""
    peak_tflops: float | None = Field(default=None, gt=0)
    """Peak of one device at the run's precision in TFLOP/s, for the share of it that is used (MFU).
    None: measured once with a matrix product."""
    eval_every: int | None = Field(default=None, gt=0)
    """Steps between two validations. None: a tenth of the run, at most 100."""
    save_every: int | None = Field(default=None, gt=0)
    """Steps between two checkpoints. None: a tenth of the run, at most 100."""
    select: Literal["best", "last"] = "best"
    """Step whose adapter becomes the judge: the one with the highest validation accuracy (of equal
    ones, the one with the lowest nll), or the last."""
    patience: int | None = Field(default=None, gt=0)
    """Stop once so many validations in a row were no better than the best. None: never."""

    def steps_between(self, total_steps: int) -> tuple[int, int]:
        """Count the steps between two validations and those between two checkpoints."""
        tenth = max(1, min(100, total_steps // 10))
        return self.eval_every or tenth, self.save_every or tenth

    @model_validator(mode="after")
    def _pixels_in_order(self) -> RunSection:
        if self.min_pixels and self.max_pixels and self.min_pixels > self.max_pixels:
            raise ValueError(
                f"min_pixels {self.min_pixels} is more than max_pixels {self.max_pixels}"
            )
        return self

    @property
    def dtype(self) -> Dtype:
        """Choose what the backbone's weights are rounded to."""
        return "bfloat16" if self.precision == "bf16" else "float32"


class Recipe(Section):
    """The sections of every recipe; each method adds its own."""

    method: str | None = None
    """How to train: the name of a file in ``train/methods/``."""
    backbone: str
    """Model to train on: ``embedded``, a folder, or a hub id."""
    data: DataSection
    adapter: AdapterSection = AdapterSection()
    optim: OptimSection
    run: RunSection
    provenance: dict[str, Any] | None = None
    """File hashes and versions; a finished run writes them and no run reads them."""

    @field_validator("adapter", mode="before")
    @classmethod
    def _fresh_adapter(cls, adapter: Any) -> Any:
        return {} if adapter is None else adapter

    def with_checkpointing(self, checkpointing: bool) -> Self:
        """Copy the recipe with another ``run.gradient_checkpointing``."""
        run = self.run.model_copy(update={"gradient_checkpointing": checkpointing})
        return self.model_copy(update={"run": run})

    @property
    def files(self) -> dict[str, Path]:
        """List every file it reads but the backbone's, by the name the recipe gives it.

        Data sets of the hub are no files; their names say what they are.
        """
        splits = (*self.data.train, self.data.val, self.data.cal, self.data.test)
        files = local_files(splits)
        if self.adapter.init and self.adapter.init_folder:
            name = str(self.adapter.init / ADAPTER_FILE)  # the same on every machine
            files[name] = self.adapter.init_folder / ADAPTER_FILE
        return files


def local_files(tables: Iterable[Path | None]) -> dict[str, Path]:
    """List the tables that are files, by name; data sets of the hub are none."""
    return {str(path): path for path in tables if path and open_table(path).hub is None}


R = TypeVar("R", bound=Section)


def parse_recipe(
    kind: type[R],
    path: Path,
    overrides: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> R:
    """Read and validate a recipe file.

    Overrides, ``key.path=value`` with YAML values, are applied in order. ``values`` are what
    :func:`read_values` returned for both, if they have been read. A ``FieldError`` names the key
    that is unknown, missing or out of range, and the override that gave it.
    """
    try:
        return kind.model_validate(read_values(path, overrides) if values is None else values)
    except ValidationError as error:
        mistake = _with_value(kind, error, str(path))
        for override in reversed(overrides):
            if f"{override.partition('=')[0]}.".startswith(f"{mistake.field}."):
                raise mistake.at(f"override '{override}'") from None
        raise mistake from None


def read_values(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read the keys of a recipe file, by section, without checking them."""
    if not path.is_file():
        raise CustosError(f"{path}: no such recipe")
    try:
        values = load_yaml(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise CustosError(f"{path}: not a recipe: expected sections of keys")
        for override in overrides:
            _apply(values, override)
    except yaml.YAMLError as error:
        raise CustosError(f"{path}: not valid YAML: {error}") from None
    except UnicodeDecodeError as error:
        raise CustosError(f"{path}: not a recipe: {error}") from None
    return values


def _with_value(kind: type[Section], error: ValidationError, location: str) -> FieldError:
    """Name the first error, with the value that the recipe gives if it is a single one."""
    mistake = FieldError.from_validation(error, location)
    first = error.errors(include_url=False)[0]
    if first["type"] == "extra_forbidden":
        advice = nearest_key(mistake.field, [key.name for key in recipe_keys(kind)])
        return FieldError(mistake.field, advice, location)
    value = first["input"]
    if value is None or isinstance(value, dict | list | tuple | BaseModel):
        return mistake
    return FieldError(mistake.field, f"{mistake.message} (got {value!r})", location)


def nearest_key(key: str, names: Sequence[str]) -> str:
    """Advise on a key that does not exist: the nearest key, or those of its section.

    The nearest is first of all one of the same name in another section.
    """
    leaf = key.rpartition(".")[2]
    by_leaf = {name.rpartition(".")[2]: name for name in names}
    at_top = list(dict.fromkeys(name.partition(".")[0] for name in names))
    same_leaf = [name for name in names if name.rpartition(".")[2] == leaf]
    near = (
        get_close_matches(key, same_leaf, n=1, cutoff=0)
        or get_close_matches(key, [*at_top, *names], n=1, cutoff=0.7)
        or [by_leaf[name] for name in get_close_matches(leaf, by_leaf, n=1, cutoff=0.7)]
    )
    section = key.rpartition(".")[0]
    siblings = [name for name in names if name.startswith(f"{section}.")] if section else at_top
    known = f"the nearest is '{near[0]}'; " if near else f"known are {', '.join(siblings)}; "
    return f"no such key; {known if near or siblings else ''}'custos recipe keys' explains all"


def _apply(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator:
        raise CustosError(f"'{override}' is not of the form key.path=value")
    *sections, leaf = key.split(".")
    for section in sections:
        if values.get(section) is None:  # a section may be empty
            values[section] = {}
        values = values[section]
        if not isinstance(values, dict):
            raise CustosError(f"override '{override}': '{section}' is not a section")
    value = load_yaml(text)
    if value == text.strip() and "e" in text.lower():  # YAML 1.1 reads 5e-4 as text
        with suppress(ValueError):
            value = float(text)
    values[leaf] = value


RECIPES = Path(__file__).parents[2] / "recipes"
SUFFIX = ".yaml"


def recipe_names() -> list[str]:
    """List the names of the recipes that came with custos, in alphabetical order."""
    paths = (path.relative_to(RECIPES) for path in RECIPES.rglob(f"*{SUFFIX}"))
    of_launchers = "accelerate"  # a folder with their settings
    return sorted(p.with_suffix("").as_posix() for p in paths if p.parts[0] != of_launchers)


def find_recipe(name: str) -> Path:
    """Find the file of a recipe, given as a path or by its name; the error names the nearest."""
    if Path(name).is_file():
        return Path(name)
    names = recipe_names()
    if (shipped := name.removesuffix(SUFFIX)) in names:
        return RECIPES / f"{shipped}{SUFFIX}"
    wanted = shipped.removeprefix("./").removeprefix("recipes/")
    by_last_part = {full.rpartition("/")[2]: full for full in names}
    near = get_close_matches(wanted, names, n=1, cutoff=0.5) or [
        by_last_part[part] for part in get_close_matches(wanted, by_last_part, n=1)
    ]
    nearest = f"the nearest is '{near[0]}'; " if near else ""
    raise CustosError(f"{name}: no such recipe; {nearest}'custos recipe list' names all")


def recipe_of_task(name: str) -> str | None:
    """Name the recipe for a task, its own or that of all others; ``None`` for no task."""
    if name not in task_names():
        return None
    recipe = f"embedded/tasks/{name}"
    return recipe if recipe in recipe_names() else "embedded/mine"


def section_keys(values: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Read the keys of a section of an unchecked recipe; none if it lacks the section."""
    keys = values.get(name)
    if not isinstance(keys, dict | None):
        raise FieldError(name, f"expected a section of keys (got {keys!r})", str(path))
    return keys or {}


def summary_of(path: Path) -> str:
    """Read what the comment at the top of a recipe says it is for; empty if it says nothing.

    The first line of the comment is the launch command, the second the summary.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    return comment[1] if len(comment) > 1 else ""


class RecipeKey(NamedTuple):
    """A key of recipes, in words."""

    name: str
    """Section and key, with a dot between them."""
    value: str
    default: str
    meaning: str


def sections(model: type[Section]) -> list[tuple[str, type[BaseModel]]]:
    """List the sections of a recipe, each with the model of its values, in their order."""
    return [
        (key, field.annotation)
        for key, field in model.model_fields.items()
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel)
    ]


def recipe_keys(model: type[Section]) -> Iterator[RecipeKey]:
    """Yield the keys of a recipe: first those outside of sections, then section by section."""
    of_sections = sections(model)
    for prefix, of in [("", model), *((f"{name}.", section) for name, section in of_sections)]:
        for name, field in of.model_fields.items():
            if prefix or (name, field.annotation) not in of_sections:
                texts = type_text(field), default_text(field), meaning(of, name)
                yield RecipeKey(prefix + name, *texts)
