"""Memory and time of one training step: logits at supervised positions against full logits.

python -m evaluation.logits_cost --out runs/logits_cost.json

A tiny random Qwen2.5-VL at Qwen's real vocabulary, so that the vocabulary projection is what is
measured. Each variant runs in a process of its own; peak memory is the process's own record.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from judging.rows import write_json

VOCABULARY, ROWS, TOKENS, SUPERVISED, STEPS = 151_936, 8, 250, 3, 5
VARIANTS = ("weights only", "supervised", "full")


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; ``--variant`` is how it calls itself."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--variant", choices=VARIANTS)
    arguments = parser.parse_args(argv)
    if arguments.variant:
        sys.stdout.write(json.dumps(measure(arguments.variant)))
        return
    results = {}
    for variant in VARIANTS:
        command = [sys.executable, "-m", "evaluation.logits_cost", "--variant", variant]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results[variant] = json.loads(done.stdout)
    floor = results["weights only"]["peak_mib"]
    summary = {
        "rows": ROWS,
        "tokens": TOKENS,
        "supervised_tokens": SUPERVISED,
        "vocabulary": VOCABULARY,
        "variants": results,
        "memory_ratio": (results["full"]["peak_mib"] - floor)
        / (results["supervised"]["peak_mib"] - floor),
        "time_ratio": results["full"]["seconds_per_step"]
        / results["supervised"]["seconds_per_step"],
    }
    if arguments.out:
        write_json(arguments.out, summary)
    Console().print_json(data=summary)


def measure(variant: str) -> dict[str, Any]:
    """Peak resident memory (MiB) and median seconds of a forward and backward pass."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": VOCABULARY,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [2, 3, 3],
            },
        },
        vision_config={
            "depth": 1,
            "hidden_size": 32,
            "num_heads": 2,
            "intermediate_size": 64,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [0],
        },
    )
    torch.manual_seed(0)
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.get_input_embeddings().requires_grad_(False)
    model.lm_head.requires_grad_(False)
    ids = torch.randint(0, 1000, (ROWS, TOKENS))
    keep = torch.zeros(ROWS, TOKENS, dtype=torch.bool)
    keep[:, -SUPERVISED - 1 : -1] = True
    targets = ids.roll(-1, 1)[keep]
    taken = []
    for _ in range(0 if variant == "weights only" else STEPS):
        started = time.perf_counter()
        if variant == "supervised":
            logits = model(input_ids=ids, logits_to_keep=keep, use_cache=False).logits
        else:
            logits = model(input_ids=ids, use_cache=False).logits[keep]
        torch.nn.functional.cross_entropy(logits.float(), targets).backward()
        model.zero_grad()
        del logits
        taken.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"peak_mib": peak, "seconds_per_step": sorted(taken)[len(taken) // 2] if taken else 0.0}


if __name__ == "__main__":
    main()
