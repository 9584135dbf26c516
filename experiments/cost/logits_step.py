"""Memory and time of one training step at Qwen's vocabulary, by which logits are held.

python -m experiments logits_step --out runs/logits_cost.json

"full" holds the logits of the whole sequence, "supervised" those of the supervised positions,
"chunked" those of a chunk of them at a time (losses.chunked). Judges that answer with a label
supervise three tokens, critiques hundreds. A tiny random Qwen2.5-VL, so that the vocabulary
projection is what is measured. Each variant runs in a process of its own; peak memory is the
process's own record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.cost.step_variants import FLOOR, compare_steps, cost_of_steps
from judging.files.records import write_json

VOCABULARY, STEPS = 151_936, 3
VARIANTS = (FLOOR, "chunked", "supervised", "full")


@dataclass(frozen=True)
class Shape:
    """A batch: ``rows`` sequences of ``tokens``, the last ``supervised`` of each trained on."""

    rows: int
    tokens: int
    supervised: int


SHAPES = {"label": Shape(8, 250, 3), "critique": Shape(2, 512, 384)}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, which calls itself with ``--variant`` and ``--shape``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--shape", choices=SHAPES, default="critique")
    arguments = parser.parse_args(argv)
    if arguments.variant:
        sys.stdout.write(json.dumps(measure(arguments.variant, SHAPES[arguments.shape])))
        return
    summary = {
        "vocabulary": VOCABULARY,
        "shapes": {
            name: {
                **asdict(shape),
                "variants": compare_steps(
                    "experiments.cost.logits_step", VARIANTS, "--shape", name
                ),
            }
            for name, shape in SHAPES.items()
        },
    }
    if arguments.out:
        write_json(arguments.out, summary)
    Console().print_json(data=summary)


def measure(variant: str, shape: Shape) -> dict[str, Any]:
    """Measure forward and backward passes: peak memory in MiB, median seconds, and the loss."""
    import torch

    from losses import chunked_token_logprobs, token_logprobs

    model = _model()
    ids = torch.randint(0, 1000, (shape.rows, shape.tokens))
    keep = torch.zeros_like(ids, dtype=torch.bool)
    keep[:, -shape.supervised - 1 : -1] = True
    targets = ids.roll(-1, 1)[keep]
    taken, loss = [], torch.zeros(())
    for _ in range(0 if variant == FLOOR else STEPS):
        started = time.perf_counter()
        if variant == "full":
            logits = model(input_ids=ids, use_cache=False).logits
            logprobs = token_logprobs(logits, ids.roll(-1, 1))[keep]
            del logits
        else:
            hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[keep]
            weight = model.lm_head.weight
            logprobs = (
                chunked_token_logprobs(hidden, weight, targets)
                if variant == "chunked"
                else token_logprobs(hidden @ weight.T, targets)
            )
        loss = -logprobs.mean()
        loss.backward()
        model.zero_grad()
        del logprobs
        taken.append(time.perf_counter() - started)
    return {**cost_of_steps(taken), "loss": loss.item()}


def _model() -> Any:
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
    return model


if __name__ == "__main__":
    main()
