"""Scoring speed of one judge in custos, in row-by-row generation, in plain batches and in vLLM.

python -m experiments scoring_speed --judge embedded-qs --data data/evouna/test.jsonl --rows 200 \
    --vllm .venv-vllm/bin/python --out runs/speed.json

All four read the same rows with the same merged weights in the same precision, and their times
include tokenization. They run one after the other on the same cores, in interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from judging.files.records import read_records, write_json
from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.scoring.tree_engine import TreeEngine
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Verdict

PLAIN_BATCH = 16
NEW_TOKENS = 8
GAP = 0.1  # nats between the two likeliest labels, above which every method must agree


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vllm", type=Path, help="Python of an environment with vLLM")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args(argv)

    examples = [example for _, example in read_records(arguments.data, LabelledExample)]
    requests = [example.request() for example in examples]
    scorable = whole_questions([request for request in requests if request.response.strip()])
    rows, warm = scorable[: arguments.rows], scorable[arguments.rows : arguments.rows + 48]
    judge = Judge.load(arguments.judge)
    result = compare_speed(judge, rows, warm, arguments.rounds, arguments.vllm)
    write_json(arguments.out, result)
    Console().print_json(data={k: v for k, v in result.items() if k != "disagreements"})


def whole_questions(requests: Sequence[JudgeRequest]) -> list[JudgeRequest]:
    """Sort requests by question, in the order in which questions first occur."""
    first: dict[str, int] = {}
    for request in requests:
        first.setdefault(request.question, len(first))
    return sorted(requests, key=lambda request: first[request.question])


def compare_speed(
    judge: Judge,
    rows: Sequence[JudgeRequest],
    warm: Sequence[JudgeRequest],
    rounds: int,
    vllm_python: Path | None,
) -> dict[str, Any]:
    """Time every method over the same rows of one text-only rubric, and compare labels.

    The row-by-row method runs in one round alone; without a Python of vLLM that one is left out.
    Return, per method, seconds, rows per second and custos's ratio; rows where labels differ.
    """
    library = library_model(judge)
    methods: dict[str, Callable[[Sequence[JudgeRequest]], list[str | None]]] = {
        "custos": lambda part: [verdict.label for verdict in _verdicts(judge, part)],
        "plain batches of 16": lambda part: plain_batches(judge, library, part),
        "generate row by row": lambda part: generate_rows(judge, library, part),
    }
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    labels: dict[str, list[str | None]] = {}
    for name, method in methods.items():
        method(warm[:4] if name.startswith("generate") else warm)
    for number in range(rounds):
        for name, method in methods.items():
            if number and name.startswith("generate"):
                continue
            started = time.perf_counter()
            labels[name] = method(rows)
            seconds[name].append(time.perf_counter() - started)
    if vllm_python:
        with tempfile.TemporaryDirectory() as folder:
            # vLLM does not know the embedded backbone, and its text tower is a Llama model.
            export_llama(library, judge.backbone.tokenizer, Path(folder))
            seconds["vLLM"], labels["vLLM"] = vllm_rows(
                Path(folder), judge, library.dtype, rows, warm, vllm_python
            )

    disagreements: list[dict[str, Any]] = []
    for i, verdict in enumerate(_verdicts(judge, rows)):
        first, second = sorted(verdict.probabilities.values(), reverse=True)[:2]
        gap = math.log(first) - math.log(max(second, 1e-300))
        disagreements += [
            {"row": i, "gap_nats": gap, "method": name, "label": given[i], "custos": verdict.label}
            for name, given in labels.items()
            if given[i] != verdict.label
        ]
    ours = statistics.median(seconds["custos"])
    return {
        "rows": len(rows),
        "judge": judge.name,
        "dtype": str(_weights(judge).dtype),
        "methods": {
            name: {
                "seconds": taken,
                "rows_per_second": len(rows) / statistics.median(taken),
                "custos_ratio": statistics.median(taken) / ours,
            }
            for name, taken in seconds.items()
        },
        "disagreements": disagreements,
        "disagreements_beyond_gap": sum(each["gap_nats"] > GAP for each in disagreements),
    }


def library_model(judge: Judge) -> Any:
    """Return transformers' own model with the judge's merged weights and default attention."""
    plain = load_backbone(judge.backbone.name, dtype="bfloat16").model
    plain.set_attn_implementation("sdpa")
    plain.load_state_dict(_weights(judge).state_dict())
    return plain.to(_weights(judge).dtype).eval()


def generate_rows(
    judge: Judge, model: Any, rows: Sequence[JudgeRequest], new_tokens: int = NEW_TOKENS
) -> list[str | None]:
    """Generate at most so many tokens greedily, one row at a time, as HiEval does."""
    import torch

    labels = []
    for request in rows:
        task, [prompt] = get_task(request.task), _encode(judge, [request])
        ids = torch.tensor([prompt], device=model.device)
        with torch.inference_mode():
            out = model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new_tokens,
                do_sample=False,
                eos_token_id=judge.backbone.tokenizer.convert_tokens_to_ids("<|im_end|>"),
                pad_token_id=judge.backbone.tokenizer.pad_token_id,
            )
        text = judge.backbone.tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
        labels.append(task.parse(text, task.rubric(request)))
    return labels


def plain_batches(judge: Judge, model: Any, rows: Sequence[JudgeRequest]) -> list[str | None]:
    """Score left-padded batches; the likeliest first token gives the label."""
    import torch

    first = _first_tokens(judge, rows[0])
    labels: list[str | None] = []
    for start in range(0, len(rows), PLAIN_BATCH):
        prompts = _encode(judge, rows[start : start + PLAIN_BATCH])
        width = max(map(len, prompts))
        pad = judge.backbone.tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=1).logits[:, -1]
        names = list(first)
        best = logits[:, list(first.values())].argmax(-1).tolist()
        labels += [names[index] for index in best]
    return labels


def vllm_rows(
    folder: Path,
    judge: Judge,
    dtype: Any,
    rows: Sequence[JudgeRequest],
    warm: Sequence[JudgeRequest],
    python: Path,
) -> tuple[list[float], list[str | None]]:
    """Time one pass of vLLM over unseen rows, on a checkpoint that gives a judge's logits."""
    first = _first_tokens(judge, rows[0])
    job = {
        "model": str(folder),
        "dtype": str(dtype).removeprefix("torch."),
        "warm": [list(ids) for ids in _encode(judge, warm)],
        "prompts": [list(ids) for ids in _encode(judge, rows)],
        "tokens": list(first.values()),
    }
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch, f"{name}.json") for name in ("job", "out")]
        files[0].write_text(json.dumps(job), encoding="utf-8")
        script = Path(__file__).with_name("vllm_probe.py")
        # vLLM keeps a core for its other processes unless it is told to compute on all of them.
        every_core = os.environ | {"VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}
        subprocess.run([python, "-P", script, *files], env=every_core, check=True)
        out = json.loads(files[1].read_text(encoding="utf-8"))
    by_token = {token: label for label, token in first.items()}
    return [out["seconds"]], [by_token.get(token) for token in out["tokens"]]


def export_llama(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save the text tower of the embedded backbone, which has no biases, as a Llama model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    text = model.config.text_config
    weights = model.model.language_model.state_dict()
    biases = [name for name in weights if name.endswith(".bias")]
    if any(bool(weights[name].any()) for name in biases):
        raise ValueError("the text tower has attention biases; Llama has none")
    config = LlamaConfig(
        vocab_size=text.vocab_size,
        hidden_size=text.hidden_size,
        intermediate_size=text.intermediate_size,
        num_hidden_layers=text.num_hidden_layers,
        num_attention_heads=text.num_attention_heads,
        num_key_value_heads=text.num_key_value_heads,
        max_position_embeddings=text.max_position_embeddings,
        rms_norm_eps=text.rms_norm_eps,
        rope_theta=text.rope_parameters["rope_theta"],
        tie_word_embeddings=True,
        bos_token_id=text.bos_token_id,
        eos_token_id=text.eos_token_id,
    )
    with torch.device("meta"):
        llama = LlamaForCausalLM(config)
    llama = llama.to_empty(device="cpu").to(model.dtype)
    unbiased = {name: tensor for name, tensor in weights.items() if name not in biases}
    llama.model.load_state_dict(unbiased)
    llama.tie_weights()
    llama.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _weights(judge: Judge) -> Any:
    assert isinstance(judge.engine, TreeEngine)
    return judge.engine.model.backbone


def _encode(judge: Judge, rows: Sequence[JudgeRequest]) -> list[tuple[int, ...]]:
    encoded = judge.encoder.encode([(get_task(request.task), request) for request in rows])
    return [prompt.prefix_ids + prompt.suffix_ids for prompt in encoded]


def _first_tokens(judge: Judge, request: JudgeRequest) -> dict[str, int]:
    task = get_task(request.task)
    tree = judge.encoder.tree(task.labels(task.rubric(request)))
    return {label: path[0][1] for label, path in zip(tree.labels, tree.paths, strict=True)}


def _verdicts(judge: Judge, rows: Sequence[JudgeRequest]) -> list[Verdict]:
    return list(judge.grade(rows, calibrated=False))
