"""``--dry-run N`` and ``--random-weights`` of the training scripts.

Checkpoints with random weights have the shape of a published one, for where none can be had. Their
files are laid out as on the hub: bfloat16 shards with an index, configuration, tokenizer, chat
template, limits on pictures. A judge trained on them knows nothing; its card says so.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO, Any

import httpx
import torch
from filelock import FileLock
from PIL import Image
from rich.console import Console

from judging.errors import CustosError, Missing
from judging.files.atomic import whole_folder, write_text
from judging.files.pictures import mime_type
from judging.files.records import write_json, write_records
from judging.fingerprint import digest, file_sha256
from judging.judge import Judge
from judging.models.backbones import RANDOM_WEIGHTS, empty_model
from judging.models.checkpoints import TEXT_FAMILIES
from judging.models.fetched import CHAT_TEMPLATE, cache_folder, embedded_folder
from judging.progress import grouped
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from train.launch.front import interrupted_by, known_error, load_recipe
from train.launch.run_plan import backbone_config, plan_run
from train.methods.base import Method
from train.methods.dpo import DpoRecipe
from train.plan.planner import PUBLISHED_LIMITS, gpu_memory, in_gib
from train.rows.data import ReplaySection, read_splits
from train.setup.engines import FSDP, asks_for
from train.setup.recipe import Recipe, parse_recipe, section_keys
from train.setup.run_log import LOG_FILE
from train.tracking.throughput import PARTS, Part, process_peak

TOKENIZER_VARIABLE = "CUSTOS_REAL_TOKENIZER"
"""Environment variable with a folder of tokenizer files; 'make real-tokenizer' makes one."""
REAL_TOKENIZER = Path(__file__).parents[2] / ".real-tokenizer"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
SHARD = "1GB"
"""Size of a shard."""
_TOKENS = {
    "image": "image_pad",
    "video": "video_pad",
    "vision_start": "vision_start",
    "vision_end": "vision_end",
}


def random_checkpoint(name: str) -> Path:
    """Make a folder with random weights in the shape of a backbone, once; return it."""
    config = backbone_config(name)
    # The backbone's own tokenizer, else the published one of Qwen3, else the embedded one.
    candidates = (Path(name), Path(os.environ.get(TOKENIZER_VARIABLE, REAL_TOKENIZER)))
    whole = (f for f in candidates if all((f / file).is_file() for file in TOKENIZER_FILES))
    tokenizer = next(whole, None) or embedded_folder()
    made_of = {
        "config": config.to_json_string(),
        "tokenizer": {file: file_sha256(tokenizer / file) for file in TOKENIZER_FILES},
    }
    folder = cache_folder() / "random-weights" / f"{Path(name).name}-{digest(made_of)[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):  # of several processes one writes, and the others wait
        if not folder.is_dir():
            with whole_folder(folder) as partial:
                _write(partial, config, tokenizer)
    return folder


def _write(folder: Path, config: Any, tokenizer: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

    for file in TOKENIZER_FILES:
        shutil.copyfile(tokenizer / file, folder / file)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    loaded = AutoTokenizer.from_pretrained(str(folder))
    text_config = config.get_text_config()
    if (most := max(loaded.get_vocab().values())) >= text_config.vocab_size:
        raise CustosError(
            f"{tokenizer}: {most + 1:,} tokens are more than the {text_config.vocab_size:,} of the "
            f"backbone; name a folder with its own tokenizer in {TOKENIZER_VARIABLE}"
        )
    is_text = config.model_type in TEXT_FAMILIES
    if not is_text:
        ids = {key: loaded.convert_tokens_to_ids(f"<|{token}|>") for key, token in _TOKENS.items()}
        config.update({f"{key}_token_id": number for key, number in ids.items()})
    text_config.update({key: getattr(loaded, key) for key in ("eos_token_id", "pad_token_id")})
    config.update({RANDOM_WEIGHTS: True})
    if not is_text:
        vision = config.vision_config
        limits = PUBLISHED_LIMITS.get(vision.patch_size, PUBLISHED_LIMITS[16])
        images = {
            "image_processor_type": "Qwen2VLImageProcessor",
            "size": {"shortest_edge": limits.min_pixels, "longest_edge": limits.max_pixels},
            "patch_size": vision.patch_size,
            "temporal_patch_size": vision.temporal_patch_size,
            "merge_size": vision.spatial_merge_size,
        }
        if config.model_type.startswith("qwen3"):
            images |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
        write_json(folder / "preprocessor_config.json", images)
    size = 2 * empty_model(config).num_parameters()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise CustosError(
            f"{folder.parent}: random weights take {in_gib(size)}, and {in_gib(free)} are free; "
            "name another folder in CUSTOS_CACHE"
        )
    auto = AutoModelForCausalLM if is_text else AutoModelForImageTextToText
    device = "cuda" if torch.cuda.is_available() else "cpu"  # a CPU takes a minute for 4B weights
    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        model = auto.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder, max_shard_size=SHARD)  # and the configuration


MOST_HELD_OUT = 16
CRITIQUE_TOKENS = 16
"""Most tokens of a critique that the judge of a dry run writes."""
READY = "ready"
"""File with the keys of the few rows; the first process writes it once the others may read them."""
SECONDS_TO_PREPARE = 1800


def keys_of_random_weights(path: Path, values: Mapping[str, Any]) -> list[str]:
    """Make the checkpoint and return the keys that train on it, with a fresh adapter.

    An earlier run's adapter belongs to the published weights.
    """
    if not isinstance(values.get("backbone"), str):
        raise CustosError(f"{path}: no backbone, so --random-weights has no shape to follow")
    folder = random_checkpoint(values["backbone"])
    fresh = ["adapter.init=null"] if section_keys(values, "adapter", path).get("init") else []
    return [f"backbone={folder}", *fresh]


@dataclass(frozen=True)
class Rehearsal:
    """A dry run of a training script."""

    train: Callable[[Recipe], None]
    method: type[Method]
    recipe: Path
    keys: Sequence[str]
    steps: int

    @property
    def is_first(self) -> bool:
        """Tell whether this process writes the rows and prints."""
        return os.environ.get("RANK", "0") == "0"

    def run(self) -> None:
        """Run every part, then print the table of those that ended; an error names its part."""
        processes = int(os.environ.get("WORLD_SIZE", "1"))
        if int(os.environ.get("LOCAL_WORLD_SIZE", processes)) < processes:
            raise CustosError(  # they would not find each other's rows
                "a dry run takes one machine, and this launch has several; launch it on one of "
                "them alone (num_machines: 1)"
            )
        keys: list[str] = []
        works, shared = False, asks_for(FSDP, os.environ)  # the training takes it out
        # The first process ends its service and deletes the folder, even if a launcher stops it.
        signals = (signal.SIGTERM,) if self.is_first else ()
        with interrupted_by(*signals), _shared_folder(self.is_first) as folder:
            PARTS.start(silent=not self.is_first)
            try:
                with ExitStack() as quiet:
                    if self.is_first:  # what it prints is of a judge that will be deleted
                        log = quiet.enter_context((folder / LOG_FILE).open("w", encoding="utf-8"))
                        quiet.enter_context(redirect_stdout(log))
                        quiet.enter_context(redirect_stderr(log))
                    keys = self._prepare(folder)
                    recipe = load_recipe(self.method, self.recipe, keys)
                    self.train(recipe)
                    if self.is_first:
                        self._judge_and_serve(recipe)
                works = True
            except Exception as error:
                raise _failure(error) from error
            finally:
                measured = PARTS.stop()
                if self.is_first and keys:
                    lines = as_table(measured, self.recipe, keys, processes, shared)
                    if works:
                        lines[-1] += f"; {self.method.script} works with this recipe"
                    text = "\n".join(lines)
                    Console().print(text, markup=False, highlight=False, soft_wrap=True)

    def _prepare(self, folder: Path) -> list[str]:
        """Choose the keys of the short run, whose rows the first process has written."""
        steps, ready = self.steps, folder / READY
        keys = [
            *(f"method={self.method.name}", *self.keys, f"run.output={folder / 'judge'}"),
            *(f"optim.max_steps={steps}", f"optim.epochs={steps}"),
            *(f"run.eval_every={steps}", f"run.save_every={steps}", "run.log_every=1"),
        ]
        with PARTS.measured("rows"):
            recipe = parse_recipe(self.method.recipe_class, self.recipe, keys)
            if self.is_first:
                write_text(ready, "\n".join(keys_of_few_rows(recipe, steps, folder)))
            until = time.monotonic() + SECONDS_TO_PREPARE
            while not ready.is_file():
                if time.monotonic() > until:
                    raise CustosError("the first process wrote no rows")
                time.sleep(0.1)
            return [*keys, *ready.read_text(encoding="utf-8").splitlines()]

    def _judge_and_serve(self, recipe: Recipe) -> None:
        if not self.method.gives_labels:  # nothing was calibrated or graded
            with PARTS.measured("judge load"):
                Judge.load(str(recipe.run.output))
            return
        splits = self.method.read_rows(recipe)
        with PARTS.measured("serving"):
            size = serve_once(recipe.run.output, (splits.test or splits.val)[0])
            assert PARTS.by_name is not None
            PARTS.by_name["serving"].peak = size


def _failure(error: Exception) -> CustosError:
    """Turn a failure into an error line; the trace of an unknown one is kept in a file."""
    text = known_error(error)
    if text is None:
        handle, name = tempfile.mkstemp(prefix="custos-dry-run-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
        text = f"{type(error).__name__}: {error}; all of it: {name}"
    kind = Missing if isinstance(error, Missing) else CustosError
    return kind(f"dry run: {PARTS.failed or 'the script'} failed: {text}")


@contextmanager
def _shared_folder(is_first: bool) -> Iterator[Path]:
    """Make a folder that all processes of a machine find, and delete it afterwards."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        with tempfile.TemporaryDirectory(prefix="custos-dry-run-") as name:
            yield Path(name)
        return
    launch = f"{os.environ.get('MASTER_PORT', '')}-{os.getppid()}"
    folder = Path(tempfile.gettempdir()) / f"custos-dry-run-{os.getuid()}-{launch}"
    if is_first:
        folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        if is_first:
            shutil.rmtree(folder, ignore_errors=True)


def keys_of_few_rows(recipe: Recipe, steps: int, folder: Path) -> list[str]:
    """Write the first rows of each split to a folder and return the keys that name them.

    There are as many training rows as the steps take. The other splits have two steps' rows, at
    most :data:`MOST_HELD_OUT` rows. Rows of every label come first, because losses and calibrations
    need them: so a split has at least one row of each. Critiques that the judge writes are short.
    """
    held_out = min(MOST_HELD_OUT, 2 * recipe.optim.batch_size)
    keys = [f"data.{key}=null" for key in ("mapping", "limit", "val_limit", "exclude_answerer")]
    keys += ["data.allow_overlap=true", "data.votes=most"]  # rows come divided by their votes
    for name, examples in read_splits(recipe.data).by_name.items():
        count = steps * recipe.optim.batch_size if name == "train" else held_out
        rows = of_every_label(examples, count)
        for number, row in enumerate(rows):
            if get_task(row.task).critique is not None:
                rows[number] = row.model_copy(update={"critique_tokens": CRITIQUE_TOKENS})
        write_records(folder / f"{name}.jsonl", rows)
        keys.append(f"data.{name}={folder / name}.jsonl")
    if isinstance(getattr(recipe, "replay", None), ReplaySection):
        keys.append(f"replay.val_limit={held_out}")
    if isinstance(recipe, DpoRecipe):  # those of an earlier run are of all rows
        keys.append("dpo.preferences=null")
    return keys


def of_every_label(examples: Iterable[LabelledExample], count: int) -> list[LabelledExample]:
    """Take so many examples, or one of each label if there are more labels.

    The first example of each label comes before the second of any. Those of weight 0, from which
    nothing is learnt, are the last of their label.
    """
    examples = sorted(examples, key=lambda example: example.weight == 0)
    by_label = grouped(examples, lambda example: example.label)
    in_turn = chain.from_iterable(zip_longest(*by_label.values()))
    return list(islice((example for example in in_turn if example), max(count, len(by_label))))


def as_table(
    measured: Mapping[str, Part], recipe: Path, keys: Sequence[str], processes: int, shared: bool
) -> list[str]:
    """Write the lines of the table: what each part took, beside what was planned for it.

    The plan is for a GPU for each process, on which they may have ``shared`` one model.
    """
    on_gpu = torch.cuda.is_available()
    planned, lines = dict[str, int](), list[str]()
    try:
        gpus, memory = (processes, gpu_memory()) if on_gpu else (0, None)
        shared = shared and gpus > 1
        plan = plan_run(
            str(recipe), keys, gpus=gpus, memory=memory, rate=None, shared=shared
        ).memory
    except CustosError:  # nothing can be planned
        pass
    else:
        planned = {"load": plan.weights + plan.reserve, "step": plan.total}
        sizes = ", ".join(f"{name} {in_gib(size)}" for name, size in plan.parts().items() if size)
        lines = [f"planned for a step: {sizes}"]
    rows = [("part", "times", "seconds", "peak memory", "planned")]
    for name, part in measured.items():
        plan_of_part = in_gib(planned[name]) if name in planned else ""
        figures = (str(part.times), f"{part.seconds:.1f}", in_gib(part.peak), plan_of_part)
        rows.append((name, *figures))
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    table = [
        "  ".join([name.ljust(first), *(c.rjust(w) for c, w in zip(cells, widths, strict=True))])
        for name, *cells in rows
    ]
    of = "of tensors on the GPU" if on_gpu else "of the process"
    return [*(line.rstrip() for line in table), *lines, f"peak memory is that {of}"]


DEADLINE_S = 3600
_ADDRESS = re.compile(r"^serving .* at (http://\S+)$")


def serve_once(judge: Path, example: LabelledExample) -> int:
    """Have ``custos serve`` grade one row; return its largest resident memory, in bytes."""
    # A row as the service takes it: its pictures as data URLs, and no label.
    fields = set(JudgeRequest.model_fields) & example.model_fields_set
    body = example.model_dump(mode="json", include=fields)
    body["images"] = [_data_url(source) for source in example.images]
    command = [
        *(sys.executable, "-m", "cli", "serve", "--judge", str(judge), "--port", "0"),
        *("--deadline", str(DEADLINE_S), "--watchdog", str(DEADLINE_S)),
    ]
    with tempfile.TemporaryFile("w+") as log, serving(command, log) as (process, address):
        if address is None:
            log.seek(0)
            errors = log.read().strip().splitlines() or ["it printed no error"]
            raise CustosError(f"custos serve did not start: {errors[-1]}")
        url, request = f"{address}/judge", {"requests": [body]}
        try:
            # No proxy of the environment can reach this machine.
            reply = httpx.post(url, json=request, timeout=DEADLINE_S, trust_env=False)
            verdict = reply.json()["verdicts"][0] if reply.is_success else {}
        except (httpx.HTTPError, ValueError, LookupError) as error:
            try:
                code = process.wait(timeout=5)
            except subprocess.TimeoutExpired:  # it still runs
                reason = str(error)
            else:
                killed = "it was killed, as the system does where memory is short"
                reason = killed if code == -signal.SIGKILL else f"it ended with code {code}"
            raise CustosError(f"custos serve gave no verdict: {reason}") from None
        if verdict.get("label") is None:
            raise CustosError(f"custos serve answered {reply.status_code}: {reply.text[:300]}")
        return process_peak(Path("/proc") / str(process.pid) / "status")


@contextmanager
def serving(
    command: Sequence[str], log: IO[Any], environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str | None]]:
    """Run a ``custos serve`` while the block runs, its standard error in a log.

    Yield the process and, once its judges are loaded, its address; ``None`` if it ended before.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
    )
    assert process.stdout is not None
    try:
        matches = (_ADDRESS.match(line.strip()) for line in process.stdout)
        yield process, next((match[1] for match in matches if match), None)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _data_url(source: str) -> str:
    if source.startswith("data:"):
        return source
    with Image.open(source) as picture:
        kind = mime_type(picture)
    content = base64.b64encode(Path(source).read_bytes()).decode("ascii")
    return f"data:{kind};base64,{content}"
