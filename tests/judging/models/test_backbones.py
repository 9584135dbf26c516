from __future__ import annotations

from typing import Any

import pytest
from transformers import PretrainedConfig

from judging.errors import Missing
from judging.models.backbones import load_backbone


@pytest.mark.parametrize(
    ("version", "revision"), [("a" * 40, "a" * 40), ("unknown", "main"), (None, "main")]
)
def test_a_hub_checkpoint_is_asked_for_by_the_commit_it_was_trained_on(
    version: str | None, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def refuse(name: str, **given: Any) -> None:
        asked.append((name, given["revision"]))
        raise OSError("no hub here")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", lambda url: None)
    monkeypatch.setattr(PretrainedConfig, "get_config_dict", refuse)
    with pytest.raises(Missing, match="no hub here"):
        load_backbone("Qwen/Qwen2.5-VL-7B-Instruct", version=version)
    assert asked == [("Qwen/Qwen2.5-VL-7B-Instruct", revision)]
