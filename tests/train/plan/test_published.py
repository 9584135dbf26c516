"""Published checkpoints have the parameters that the hub states for their weight files."""

from __future__ import annotations

import pytest

from judging.models.backbones import empty_model
from train.launch.run_plan import PUBLISHED, published_config

TOTALS = {
    "Qwen/Qwen2.5-VL-3B-Instruct": 3_754_622_976,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8_292_166_656,
    "Qwen/Qwen2.5-VL-32B-Instruct": 33_452_718_336,
    "Qwen/Qwen2.5-VL-72B-Instruct": 73_410_777_344,
    "Qwen/Qwen3-VL-2B-Instruct": 2_127_532_032,
    "Qwen/Qwen3-VL-4B-Instruct": 4_437_815_808,
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "Qwen/Qwen3-VL-32B-Instruct": 33_357_390_064,
    "Qwen/Qwen3-VL-30B-A3B-Instruct": 31_070_754_032,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_checkpoint_has_its_parameters(name: str) -> None:
    model = empty_model(published_config(name))
    assert sum(parameter.numel() for parameter in model.parameters()) == TOTALS[name]
