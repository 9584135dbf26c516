"""TRL: GRPO with our reward, for a step of training and on given completions."""

from __future__ import annotations

import functools
from tempfile import mkdtemp
from typing import Any

from datasets import Dataset
from transformers import Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from tests.harness.program import Case, Outcome, arguments, cases, example, show
from tests.tiny import tiny_tokenizer


@functools.cache
def trainer_with(reward: Any) -> GRPOTrainer:
    """Train a model of a few thousand parameters with a reward for a step."""
    tokenizer = tiny_tokenizer()
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **sizes, **heads))
    rows = [{"prompt": case.question, "reference": case.reference} for case in cases() * 2]
    options = {"per_device_train_batch_size": 2, "num_generations": 2, "max_completion_length": 4}
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=GRPOConfig(mkdtemp(), max_steps=1, use_cpu=True, report_to=[], **options),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    trainer.train()
    return trainer


def main() -> None:
    url, _ = arguments()

    def conclude(case: Case) -> tuple[Outcome, Any]:
        trainer = trainer_with(example("TRL", url)["reward"])
        inputs = [{"prompt": case.question, "reference": case.reference}]
        [[reward]] = trainer._calculate_rewards(inputs, [case.question], [case.response], [[1]])
        outcome: Outcome = "pass" if reward > 0.75 else "partial" if reward > 0.25 else "fail"
        return outcome, f"reward {reward:.3f}"

    show("glue", conclude)


main()
