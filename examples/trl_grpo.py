"""Train a model of yours to write critiques of pairs, with a judge of custos as its reward (TRL).

pip install trl
python examples/trl_grpo.py --model Qwen/Qwen2.5-0.5B-Instruct --data pairs.jsonl --out runs/critic

The rows of ``pairs.jsonl`` have ``question``, ``response_a``, ``response_b`` and ``label`` (A, B or
None). With ``--service URL`` the judge is that of a running ``custos serve``; otherwise it is
loaded into this process.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from datasets import load_dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from custos.rewards import CritiqueReward

PROMPT = """Question: {question}

Response A: {response_a}

Response B: {response_b}

Say in a few sentences what decides which response is better. Call them Response A and Response B.
"""


def with_prompt(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the model is asked about a pair; the row's other columns stay."""
    return {"prompt": [{"role": "user", "content": PROMPT.format(**row)}]}


def main(argv: list[str] | None = None) -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", required=True, help="folder or hub id of the model to train")
    parser.add_argument("--data", required=True, help="JSONL file of labelled pairs")
    parser.add_argument("--out", required=True, help="folder for the trained model")
    parser.add_argument("--judge", default="embedded-pair", help="judge; default %(default)s")
    parser.add_argument("--service", help="address of a running custos serve; default none")
    parser.add_argument("--steps", type=int, default=100, help="steps; default %(default)s")
    parser.add_argument("--tokens", type=int, default=192, help="most tokens; default %(default)s")
    options = parser.parse_args(argv)

    if options.service:
        reward = CritiqueReward.connect(options.service)
    else:
        reward = CritiqueReward.load(options.judge)
    rows = load_dataset("json", data_files=options.data, split="train")
    trainer = GRPOTrainer(
        model=options.model,
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=options.out,
            max_steps=options.steps,
            num_generations=4,
            per_device_train_batch_size=4,
            max_completion_length=options.tokens,
            report_to="none",
            use_cpu=not torch.cuda.is_available(),
        ),
        train_dataset=rows.map(with_prompt),
        processing_class=AutoTokenizer.from_pretrained(options.model),
    )
    trainer.train()
    trainer.save_model(options.out)


if __name__ == "__main__":
    main()
