"""Step 5 and parts of step 6: grading offline, served, one by one, beside vLLM; texts; pictures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.cost.load_generator import closed_loop
from experiments.cost.scoring_speed import NEW_TOKENS, generate_rows, library_model, vllm_rows
from experiments.cost.service_load import GRADE_BATCH, running, service_command, time_offline
from experiments.gpu_hour.figures import ABSENT, SMALL, Figure, Hour, made_rows, random_weights
from experiments.gpu_hour.machine import attention_kernels
from judging.errors import CustosError
from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.types import JudgeRequest

ROWS, CLIENTS, ONE_BY_ONE = 2000, 64, 200
HEADLINE_SECONDS = 396.6
"""HiEval's time for 2,000 items, generated one by one on an L40."""
LABEL_TOKENS = 2
"""Tokens of a label and its end, after which random weights would not stop by themselves."""
TEXTS, TEXT_TOKENS = 32, 128
PICTURES, SIDE = 16, 1024
VLLM = Path(__file__).parents[2] / ".venv-vllm" / "bin" / "python"
RANDOM = "3B, random weights"


def offline(hour: Hour, model: str, folder: str) -> Iterator[Figure]:
    """Grade rows with a judge in this process, many at once; name the attention kernels."""
    rows = _requests(hour, hour.size(ROWS, 32))
    rate = time_offline(folder, rows, GRADE_BATCH)
    yield Figure("rows", rate, "rows/s", ">= 150" if model == RANDOM else "")
    yield Figure("2,000 rows", ROWS / rate, "s", f"< {HEADLINE_SECONDS / 10:g}")
    yield from _peak_memory()
    judge = Judge.load(folder)
    yield Figure("kernels", attention_kernels(lambda: list(judge.grade(rows[:16]))))


def service(hour: Hour, model: str, folder: str) -> Iterator[Figure]:
    """Send rows to ``custos serve`` from many clients, each row in a call of its own."""
    rows, clients = _requests(hour, hour.size(ROWS, 32)), hour.size(CLIENTS, 8)
    bodies = [row.model_dump_json(exclude_unset=True).encode() for row in rows]
    log = hour.folder / "service.log"
    with running(lambda port: service_command(folder, port), log) as (url, _):
        asyncio.run(closed_loop(url, bodies[:clients], clients))
        load = asyncio.run(closed_loop(url, bodies, clients)).report()
    yield Figure("answered", load["statuses"].get("200", 0) / len(rows), "of the calls", ">= 1")
    yield Figure("rows", load["rows_per_second"], "rows/s")
    yield from (Figure(name, load[name] or 0, "ms") for name in ("p50_ms", "p99_ms"))
    if rate := hour.book.number(f"offline: {model}", "rows"):
        yield Figure("of offline", load["rows_per_second"] / rate, "times")


def one_by_one(hour: Hour, model: str, folder: str) -> Iterator[Figure]:
    """Generate labels with transformers, a row at a time as HiEval does, and judge so with ours."""
    rows = _requests(hour, hour.size(ONE_BY_ONE, 8))
    judge = Judge.load(folder)
    library = library_model(judge)
    tokens = LABEL_TOKENS if judge.backbone.has_random_weights else NEW_TOKENS
    generate_rows(judge, library, rows[:4], tokens)
    list(judge.grade(rows[:1]))
    began = time.perf_counter()
    generate_rows(judge, library, rows, tokens)
    between = time.perf_counter()
    for row in rows:
        list(judge.grade([row]))
    rate = len(rows) / (between - began)
    yield Figure("generated", rate, "rows/s")
    yield Figure("2,000 rows generated", ROWS / rate, "s")
    yield Figure("judged", len(rows) / (time.perf_counter() - between), "rows/s")
    if many := hour.book.number(f"offline: {model}", "rows"):
        yield Figure("offline over generated", many / rate, "times", ">= 10")


def vllm(hour: Hour, model: str, folder: str) -> Iterator[Figure]:
    """Have vLLM, in an environment of its own, read the same rows, if ``.venv-vllm`` is there."""
    if not VLLM.is_file() or not Path(folder).is_dir():
        yield Figure("vLLM", ABSENT)
        return
    rows, warm = _requests(hour, hour.size(ROWS, 32)), _requests(hour, 48, seed=2)
    judge = Judge.load(folder, device="cpu")  # it makes the prompts; the GPU's memory is vLLM's
    [seconds], _ = vllm_rows(Path(folder), judge, "torch.bfloat16", rows, warm, VLLM)
    yield Figure("rows", len(rows) / seconds, "rows/s")
    if ours := hour.book.number(f"offline: {model}", "rows"):
        yield Figure("custos over vLLM", ours * seconds / len(rows), "times")


WAYS = {"offline": offline, "service": service, "one by one": one_by_one, "vLLM": vllm}


def graded(hour: Hour, way: str, model: str) -> Iterator[Figure]:
    """Measure a way of grading with a model, if its weights are at hand."""
    folder = random_weights(hour, SMALL) if model == RANDOM else model
    reason = hour.book.find(f"offline: {model}", ABSENT)  # looking for weights may take long
    if reason is None or way == "offline":
        try:
            load_backbone(folder, weights=False)
        except CustosError as error:
            reason = str(error)
        else:
            yield from WAYS[way](hour, model, folder)
            return
    yield Figure(ABSENT, reason)


def critiques(hour: Hour) -> Iterator[Figure]:
    """Draw critiques together, as a judge does before its label."""
    from judging.scoring.engine import GeneratedText, Sampling, texts_in_order

    judge = Judge.load(random_weights(hour, SMALL))
    count, tokens = hour.size(TEXTS, 4), hour.size(TEXT_TOKENS, 8)
    prompts = _prompts(judge, _requests(hour, count))
    sampling = Sampling(max_new_tokens=tokens)

    def draw() -> int:
        seeds = range(len(prompts))
        batches = judge.engine.generate(prompts, judge.encoder, "</never>", seeds, sampling)
        texts = texts_in_order(batches)
        return sum(len(text.tokens) for text in texts if isinstance(text, GeneratedText))

    draw()
    began = time.perf_counter()
    drawn = draw()
    seconds = time.perf_counter() - began
    yield Figure(f"a token of {count} critiques", 1000 * seconds / tokens, "ms")
    yield Figure("tokens", drawn / seconds, "tokens/s")
    yield Figure("tokens drawn", drawn, "", f">= {0.9 * count * tokens:g}")
    yield from _peak_memory()


def pictures(hour: Hour) -> Iterator[Figure]:
    """Score rows with a picture of 1 MP each; name the attention kernels of tower and text."""
    from PIL import Image

    from judging.scoring.prompts import Encoder
    from judging.tasks import get_task

    judge = Judge.load(random_weights(hour, SMALL))
    count, side = hour.size(PICTURES, 2), hour.size(SIDE, 224)
    rows = []
    for number, row in enumerate(_requests(hour, count)):
        file = hour.folder / f"picture-{number}.png"
        Image.radial_gradient("L").resize((side, side)).rotate(number).convert("RGB").save(file)
        rows.append(row.model_copy(update={"images": (str(file),)}))
    encoder = Encoder(judge.backbone, shows_all_pictures=True)
    began = time.perf_counter()
    prompts = _prompts(judge, rows, encoder)
    yield Figure("read and scaled", (time.perf_counter() - began) / count, "s a picture")
    task = get_task(rows[0].task)
    tree = encoder.tree(task.labels(task.rubric(rows[0])))
    judge.engine.score(prompts[:2], tree)
    began = time.perf_counter()
    judge.engine.score(prompts, tree)
    yield Figure("scored", (time.perf_counter() - began) / count, "s a picture")
    yield Figure("tokens of a row", sum(p.positions.shape[1] for p in prompts) / count)
    yield Figure("kernels", attention_kernels(lambda: judge.engine.score(prompts[:2], tree)))
    yield from _peak_memory()


def _requests(hour: Hour, count: int, seed: int = 3) -> list[JudgeRequest]:
    return [row.request() for row in made_rows(hour, count, seed)]


def _prompts(judge: Judge, rows: list[JudgeRequest], encoder: Any = None) -> list[Any]:
    from judging.tasks import get_task

    prompts: list[Any] = (encoder or judge.encoder).encode(
        [(get_task(row.task), row) for row in rows]
    )
    return prompts


def _peak_memory() -> Iterator[Figure]:
    import torch

    if torch.cuda.is_available():
        yield Figure("peak memory", torch.cuda.max_memory_allocated() / 1e9, "GB")
