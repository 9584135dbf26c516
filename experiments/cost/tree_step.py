"""Memory and time of a training step over error-analysis labels, as one tree or as many rows.

python -m experiments tree_step --out runs/tree_cost.json

The model is a small random Qwen2.5-VL. The variants "N apart" repeat prompt and image for each of N
labels: 2 for the paper's one sampled negative, 5 for all types of one score, 11 for the posterior.
Each variant runs in a process of its own, which records its peak memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from experiments.cost.step_variants import FLOOR, compare_steps, cost_of_steps
from judging.files.records import write_json
from judging.scoring.label_tree import LabelTree
from judging.tasks import get_task

if TYPE_CHECKING:
    from judging.scoring.prompts import EncodedPrompt

TEXT_TOKENS, STEPS = 250, 5
IMAGE_GRIDS = {"text": None, "image of 1,024 tokens": 64, "image of 2,025 tokens": 90}
VARIANTS = (FLOOR, "tree", "2 apart", "5 apart", "11 apart")
LABEL_TOKENS = 5


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, which calls itself with ``--variant`` and ``--prompt``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--prompt", choices=IMAGE_GRIDS, default="text")
    arguments = parser.parse_args(argv)
    if arguments.variant:
        sys.stdout.write(json.dumps(measure(arguments.variant, arguments.prompt)))
        return
    summary = {
        prompt: compare_steps("experiments.cost.tree_step", VARIANTS, "--prompt", prompt)
        for prompt in IMAGE_GRIDS
    }
    if arguments.out:
        write_json(arguments.out, summary)
    Console().print_json(data=summary)


def measure(variant: str, prompt: str) -> dict[str, Any]:
    """Measure forward and backward passes of one row: peak memory in MiB, median seconds."""
    import torch

    from judging.scoring.tree_batch import TreeModel, label_logprobs, make_tree_batch

    model = _model()
    encoded, tree = _prompt(model, IMAGE_GRIDS[prompt]), _tree()
    taken = []
    for _ in range(0 if variant == FLOOR else STEPS):
        started = time.perf_counter()
        if variant == "tree":
            logits = TreeModel(model)(make_tree_batch([encoded], [tree], 0))
            logprobs = label_logprobs(logits, tree)[0]
        else:
            logprobs = _apart(model, encoded, tree, int(variant.split()[0]))
        # Any function of the probabilities will do; this one raises the first label's.
        (-logprobs[0] - torch.log1p(-(logprobs[1:] / LABEL_TOKENS).exp()).mean()).backward()
        model.zero_grad()
        taken.append(time.perf_counter() - started)
    return cost_of_steps(taken)


def _apart(model: Any, prompt: EncodedPrompt, tree: LabelTree, count: int) -> Any:
    """Score ``count`` labels in a batch with one row each; return log-probabilities ``[count]``."""
    import torch

    labels = [[token for _, token in path] for path in tree.paths[:count]]
    longest = max(map(len, labels))
    ids = torch.tensor([[*prompt.suffix_ids, *x, *[0] * (longest - len(x))] for x in labels])
    start = len(prompt.suffix_ids)
    vision = {name: torch.cat([value] * count) for name, value in prompt.vision.items()}
    if vision:
        vision["mm_token_type_ids"] = (ids == model.config.image_token_id).int()
    keep = torch.arange(start - 1, start + longest - 1)
    logits = model(input_ids=ids, logits_to_keep=keep, use_cache=False, **vision).logits
    tokens = ids[:, start:]
    scores = logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return (scores * (tokens > 0)).sum(-1)


def _tree() -> LabelTree:
    """Build the tree of the eleven labels with one made-up token per word, ``;`` and end token."""
    task = get_task("hieval-ea")
    labels = task.labels("plain/all")
    words = sorted({word for label in labels for word in label.replace(";", " ;").split()})
    number = {word: 10 + i for i, word in enumerate(words)}
    tokens = [[*(number[word] for word in x.replace(";", " ;").split()), 9] for x in labels]
    return LabelTree.build(labels, tokens)


def _prompt(model: Any, side: int | None) -> EncodedPrompt:
    """Make a prompt of random text, after an image of ``side * side`` patches unless ``None``."""
    import torch

    from judging.scoring.prompts import EncodedPrompt

    text = torch.randint(100, 1000, (TEXT_TOKENS,)).tolist()
    if side is None:
        return EncodedPrompt((), tuple(text), torch.arange(len(text)).expand(3, -1), {}, False)
    vision = {
        "pixel_values": torch.randn(side * side, 3 * 2 * 14 * 14),
        "image_grid_thw": torch.tensor([[1, side, side]]),
    }
    config = model.config
    ids = torch.tensor(
        [
            [
                config.vision_start_token_id,
                *[config.image_token_id] * (side * side // 4),
                config.vision_end_token_id,
                *text,
            ]
        ]
    )
    positions, _ = model.model.get_rope_index(
        input_ids=ids,
        mm_token_type_ids=(ids == config.image_token_id).int(),
        image_grid_thw=vision["image_grid_thw"],
        attention_mask=torch.ones_like(ids),
    )
    return EncodedPrompt((), tuple(ids[0].tolist()), positions[:, 0], vision, False)


def _model() -> Any:
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": 2048,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_hidden_layers": 6,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [8, 12, 12],
            },
        },
        vision_config={
            "depth": 2,
            "hidden_size": 128,
            "num_heads": 2,
            "intermediate_size": 256,
            "out_hidden_size": 256,
            "fullatt_block_indexes": [1],
        },
        vision_start_token_id=1,
        vision_end_token_id=2,
        image_token_id=3,
        video_token_id=4,
    )
    torch.manual_seed(0)
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.model.visual.requires_grad_(False)
    return model


if __name__ == "__main__":
    main()
