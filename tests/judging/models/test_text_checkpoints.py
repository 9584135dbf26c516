"""Checkpoints that read text alone, as people keep and change them: right logits, or one line."""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from judging.models.backbones import load_backbone
from tests.conftest import HubFolders
from tests.hub import shards
from tests.judging.models.made_up import edit, error_in
from tests.judging.scoring.made_up import TEXT_ONLY, encode, engine_of, varied_tree

_BEFORE = "{% for m in messages %}"
_LONG = {
    **{"short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "factor": 4.0},
    "original_max_position_embeddings": 8192,
}
_TURN = "'<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n'"


@pytest.fixture
def text_folder(hub_folders: HubFolders, tmp_path: Path) -> Path:
    return Path(shutil.copytree(hub_folders("Qwen2.5-0.5B-Instruct"), tmp_path / "text"))


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    return {name: weight for file in shards(folder) for name, weight in load_file(file).items()}


def _joined(folder: Path) -> dict[str, torch.Tensor]:
    """Take the shards away and return what they held."""
    tensors = _tensors(folder)
    for file in (*shards(folder), folder / "model.safetensors.index.json"):
        file.unlink()
    return tensors


def _scores(folder: Path) -> list[list[float]]:
    """Score texts of different lengths, of which some are padded."""
    backbone = load_backbone(str(folder), dtype="float32", device="cpu")
    scores = engine_of(backbone).score(encode(backbone, list(TEXT_ONLY)), varied_tree(backbone))
    return [each for each in scores if isinstance(each, list)]


@pytest.mark.parametrize("prefix", ["model.", ""])
@pytest.mark.parametrize(
    ("extra", "is_read"),
    [
        ("layers.2.mlp.up_proj.weight", False),
        ("layers.0.self_attn.o_proj.bias", False),
        ("layers.0.self_attn.o_proj.weight_scale_inv", False),
        ("layers.0.self_attn.rotary_emb.inv_freq", True),
        ("score.weight", True),
        ("mtp.layers.0.mlp.up_proj.weight", True),
    ],
)
def test_weights_for_which_the_configuration_has_no_place(
    text_folder: Path, prefix: str, extra: str, is_read: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Others than a part that a judge does not use would change its logits."""
    tensors = _joined(text_folder)
    inside = not extra.startswith(("score", "mtp"))
    named = {name.replace("model.", prefix, 1): weight for name, weight in tensors.items()}
    name = f"{prefix}{extra}" if inside else extra
    save_file(named | {name: torch.ones(4)}, text_folder / "model.safetensors")
    if is_read:
        load_backbone(str(text_folder), device="cpu")
    else:
        assert "1 weights have no place" in (message := error_in(text_folder))
        assert f"'{name}'" in message
    assert caplog.records == []


def test_a_single_file_beside_shards_is_the_one_that_the_library_reads(text_folder: Path) -> None:
    tensors = {name: torch.zeros_like(weight) for name, weight in _tensors(text_folder).items()}
    save_file(tensors, text_folder / "model.safetensors")
    model = load_backbone(str(text_folder), device="cpu").model
    own = AutoModelForCausalLM.from_pretrained(text_folder)
    assert not own.model.norm.weight.any() and not model.model.norm.weight.any()


def test_attention_that_a_configuration_names_is_not_needed(text_folder: Path) -> None:
    """Some checkpoints keep the name of a kernel that their authors had."""
    scores = _scores(text_folder)
    named = {
        "_attn_implementation": "flash_attention_2",
        "attn_implementation": "flash_attention_3",
    }
    edit(text_folder / "config.json", lambda c: c.update(named))
    assert _scores(text_folder) == scores


def test_a_model_that_reads_both_ways_is_refused(text_folder: Path) -> None:
    edit(text_folder / "config.json", lambda c: c.update(is_causal=False))
    assert "is_causal" in error_in(text_folder)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding_window"),
        ({"layer_types": ["full_attention", "chunked_attention"]}, "chunked_attention"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "linear_attention"),
        ({"vision_config": {}}, "vision_config"),
        ({"rope_scaling": {"type": "longrope", **_LONG}}, "longrope"),
    ],
)
def test_layers_and_positions_that_are_not_computed(
    text_folder: Path, values: dict[str, Any], named: str
) -> None:
    edit(text_folder / "config.json", lambda c: c.update(values))
    assert named in error_in(text_folder)


def test_a_tokenizer_without_padding(text_folder: Path) -> None:
    scores = _scores(text_folder)
    edit(text_folder / "tokenizer_config.json", lambda c: c.update(pad_token=None))
    assert _scores(text_folder) == scores


def test_a_vocabulary_beyond_the_embedding(text_folder: Path) -> None:
    """Padding that no text becomes may be; a word or a control token may not."""
    tensors, embedding = _joined(text_folder), "model.embed_tokens.weight"

    def cut(rows: int) -> None:
        kept = tensors | {embedding: tensors[embedding][:rows].clone()}
        save_file(kept, text_folder / "model.safetensors")
        edit(text_folder / "config.json", lambda c: c.update(vocab_size=rows))

    tokenizer = AutoTokenizer.from_pretrained(text_folder)
    cut(len(tokenizer))
    scores = _scores(text_folder)
    tokenizer.add_special_tokens({"pad_token": "[PAD]"})
    tokenizer.save_pretrained(text_folder)
    assert _scores(text_folder) == scores
    cut(tokenizer.convert_tokens_to_ids("<|im_end|>"))
    assert "tokenizer" in error_in(text_folder)


@pytest.mark.parametrize(
    "values",
    [
        {"rms_norm_eps": -1e-6},
        {"rms_norm_eps": math.nan},
        {"rms_norm_eps": math.inf},
        {"rope_theta": 0.0},
        {"rope_theta": -1e4},
        {"rope_theta": math.nan},
        {"rope_theta": math.inf},
    ],
)
def test_numbers_that_no_model_has(text_folder: Path, values: dict[str, float]) -> None:
    edit(text_folder / "config.json", lambda c: c.update(values))
    assert next(iter(values)) in error_in(text_folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_BEFORE, "{% for m in messages if m.role != 'system' %}"),
        (_BEFORE, "{% for m in [messages[0], messages[-1]] %}"),
        (
            _TURN,
            "('\\n' if not loop.first and loop.previtem.role == m.role "
            "else '<|im_start|>' + m.role + '\\n') + m.content + '<|im_end|>\\n'",
        ),
        (
            _TURN,
            "raise_exception('alternate') if not loop.first and loop.previtem.role == m.role "
            f"else {_TURN}",
        ),
        ("m.content", "(m.content | lower)"),
        ("m.content", "('It is ' + strftime_now('%d %b %Y') + '. ' + m.content)"),
        ("add_generation_prompt", "False"),
    ],
    ids=["no system", "last turn", "joined", "alternating", "changed", "dated", "no answer"],
)
def test_templates_that_do_not_give_every_field_a_turn_of_its_own(
    text_folder: Path, old: str, new: str
) -> None:
    """What they make would be judged under no instruction, or by the day."""

    def change(content: dict[str, Any]) -> None:
        assert old in content["chat_template"]
        content["chat_template"] = content["chat_template"].replace(old, new)

    edit(text_folder / "tokenizer_config.json", change)
    assert "the chat template cannot be used" in error_in(text_folder)


def test_a_date_that_a_template_does_not_print(text_folder: Path) -> None:
    dated = "{% if not messages %}{{ strftime_now('%Y') }}{% endif %}"
    edit(
        text_folder / "tokenizer_config.json",
        lambda c: c.update(chat_template=dated + c["chat_template"]),
    )
    load_backbone(str(text_folder), device="cpu", weights=False)
