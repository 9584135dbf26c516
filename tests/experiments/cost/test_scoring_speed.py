from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from experiments.cost.scoring_speed import compare_speed, export_llama
from judging.judge import Judge
from judging.types import JudgeRequest
from tests.tiny import reference_model


@pytest.fixture
def bias_free(tiny_folders: Any) -> Any:
    """A tiny Qwen2.5-VL whose attention biases are zero, as a grafted backbone's are."""
    model = reference_model(tiny_folders("qwen2_5_vl"), "sdpa")
    with torch.no_grad():
        for name, parameter in model.model.language_model.named_parameters():
            if name.endswith(".bias"):
                parameter.zero_()
    model.lm_head.weight = model.model.language_model.embed_tokens.weight
    return model


def test_the_exported_llama_gives_the_same_text_logits(
    bias_free: Any, tiny: Any, tmp_path: Path
) -> None:
    export_llama(bias_free, tiny.tokenizer, tmp_path)
    llama = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    ids = torch.randint(0, 100, (2, 17), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(llama(ids).logits, bias_free(ids).logits, atol=1e-5, rtol=0)


def test_attention_biases_are_refused(bias_free: Any, tiny: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        bias_free.model.language_model.layers[0].self_attn.q_proj.bias[0] = 0.5
    with pytest.raises(ValueError, match="has attention biases"):
        export_llama(bias_free, tiny.tokenizer, tmp_path)


@pytest.mark.slow
def test_all_methods_agree_where_the_judge_is_sure() -> None:
    judge = Judge.load("embedded", dtype="float32")
    rows = [
        JudgeRequest(
            question=f"What is {a} plus {a}?",
            references=(str(2 * a),),
            reference_mode="any",
            responses=(f"The sum is {2 * a + a % 2}.",),
        )
        for a in range(24)
    ]
    result = compare_speed(judge, rows[:16], rows[16:], rounds=1, vllm_python=None)
    batched = [d for d in result["disagreements"] if d["method"] == "plain batches of 16"]
    # An untrained backbone may generate something else than a label; batches only compare labels.
    assert all(d["gap_nats"] < 0.1 for d in batched)
