"""GGUF files of made-up weights, written by the library ``gguf``, as checkpoints."""

import json
import shutil
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.models import gguf_files
from judging.models.backbones import load_backbone
from judging.models.gguf_files import convert
from tests.conftest import HubFolders
from tests.hub import TEXT_LAYOUTS

Q8, Q4 = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0


def _write(
    path: Path,
    source: Path,
    *,
    architecture: str | None = None,
    tensors: dict[str, Any] | None = None,
    scaling: str | None = None,
    more: dict[str, Any] | None = None,
    parts: int = 0,
    fields: dict[str, Any] | None = None,
) -> Path:
    """Write a checkpoint as a GGUF file, as llama.cpp does."""
    config = json.loads((source / "config.json").read_text(encoding="utf-8")) | (fields or {})
    family = architecture or config["model_type"]
    writer = gguf.GGUFWriter(path, family, split_max_tensors=parts)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
    if scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling))
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    kinds = {token: gguf.TokenType.NORMAL for token in tokenizer["model"]["vocab"]}
    ids = dict(tokenizer["model"]["vocab"])
    for added in tokenizer["added_tokens"]:
        ids[added["content"]] = added["id"]
        special = added["special"]
        kinds[added["content"]] = gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED
    for index in range(len(ids), config["vocab_size"]):
        ids[f"[PAD{index}]"], kinds[f"[PAD{index}]"] = index, gguf.TokenType.UNUSED
    tokens = sorted(ids, key=lambda token: ids[token])
    writer.add_tokenizer_model((fields or {}).get("tokenizer", "gpt2"))
    writer.add_tokenizer_pre((fields or {}).get("pre", "qwen2"))
    for key, value in (more or {}).items():
        add = writer.add_bool if isinstance(value, bool) else writer.add_float32
        add(f"{family}.{key}", value)
    writer.add_token_list(tokens)
    writer.add_token_types([(fields or {}).get("kinds", kinds[token]) for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_pad_token_id(ids["<|endoftext|>"])
    writer.add_bos_token_id(ids["<|endoftext|>"])
    writer.add_add_bos_token(False)
    texts = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    writer.add_chat_template((fields or {}).get("chat_template", texts["chat_template"]))
    for name, values in (tensors or _tensors(source)).items():
        kind = None if values.dtype != np.uint8 else (Q8 if name != "token_embd.weight" else Q4)
        writer.add_tensor(name, values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(source: Path) -> dict[str, Any]:
    """The weights of a checkpoint by their names in GGUF files; matrices in 16 bits."""
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    [architecture] = [
        key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == config["model_type"]
    ]
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    tensors = {}
    for shard in source.glob("*.safetensors"):
        for name, weight in load_file(shard).items():
            in_gguf = names.get_name(name, (".weight", ".bias"))
            values = weight.float().numpy()
            tensors[in_gguf] = values.astype(np.float16) if values.ndim > 1 else values
    return tensors


@pytest.fixture(params=TEXT_LAYOUTS)
def source(request: pytest.FixtureRequest, hub_folders: HubFolders) -> Path:
    return Path(hub_folders(request.param))


@pytest.fixture
def qwen2(hub_folders: HubFolders) -> Path:
    return Path(hub_folders("Qwen2.5-0.5B-Instruct"))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))


def test_a_file_becomes_the_checkpoint_it_was_made_of(source: Path, tmp_path: Path) -> None:
    path = _write(tmp_path / "tiny.GGUF", source)
    converted = load_backbone(str(path), dtype="float32", device="cpu")
    published = load_backbone(str(source), dtype="float32", device="cpu")
    assert converted.version == file_sha256(path)
    expected = published.model.state_dict()
    found = converted.model.state_dict()
    assert found.keys() == expected.keys()
    for name, weight in found.items():  # 16 bits of one kind, then of another
        torch.testing.assert_close(weight, expected[name], rtol=2**-7, atol=1e-6)
    keys = ("rms_norm_eps", "rope_parameters", "head_dim", "tie_word_embeddings", "vocab_size")
    for key in (*keys, "max_position_embeddings", "eos_token_id", "num_key_value_heads"):
        assert getattr(converted.model.config, key, None) == getattr(
            published.model.config, key, None
        )
    text = "It is 18 — cafe\u0301, <tool_call> [PAD430] <|im_end|>\n\n  Nine's."
    assert converted.tokenizer.encode(text) == published.tokenizer.encode(text)
    assert len(converted.tokenizer) == len(published.tokenizer)
    assert converted.processor.chat_template == published.processor.chat_template


def test_a_converted_file_is_not_converted_again(
    qwen2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path / "tiny.gguf", qwen2)
    load_backbone(str(path), weights=False)
    monkeypatch.setattr(gguf_files, "convert", None)
    version = load_backbone(str(path), weights=False).version
    path.unlink()
    assert load_backbone(str(path), weights=False, version=version).version == version
    for other in (None, "0" * 64):
        with pytest.raises(CustosError, match="no such file"):
            load_backbone(str(path), weights=False, version=other)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("kept", [None, 0, 90])
def test_a_damaged_cache_says_what_to_delete(
    file: str, kept: int | None, qwen2: Path, tmp_path: Path
) -> None:
    """No download of the user's would mend what was converted here."""
    path = _write(tmp_path / "tiny.gguf", qwen2)
    load_backbone(str(path), weights=False)
    [made] = (tmp_path / "cache").glob("gguf-*@1")
    content = (made / file).read_bytes()
    (made / file).unlink()
    if kept is not None:
        (made / file).write_bytes(content[:kept])
    with pytest.raises(CustosError) as caught:
        load_backbone(str(path), device="cpu")
    assert f"delete {made}" in str(caught.value)
    assert "\n" not in str(caught.value)
    shutil.rmtree(made)
    load_backbone(str(path), device="cpu")


def test_other_programs_read_the_folder(qwen2: Path, tmp_path: Path) -> None:
    """Quantized weights equal transformers' own reading of the file."""
    tensors = _tensors(qwen2)
    for name in ("blk.0.ffn_up.weight", "blk.1.attn_k.weight"):
        tensors[name] = gguf.quantize(tensors[name].astype(np.float32), Q8)
    path = _write(tmp_path / "tiny.gguf", qwen2, tensors=tensors)
    convert(path, tmp_path / "made")
    own = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=path.name, dtype=torch.bfloat16
    ).state_dict()
    made = AutoModelForCausalLM.from_pretrained(tmp_path / "made", dtype=torch.bfloat16)
    for name, weight in made.state_dict().items():
        assert torch.equal(weight, own[name]), name
    assert made.generation_config.eos_token_id[0] == made.config.eos_token_id
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "made")
    plain = Tokenizer.from_file(str(tmp_path / "made/tokenizer.json"))
    text = "The cafe\u0301 <|im_end|>"
    assert tokenizer.encode(text) == plain.encode(text).ids


@pytest.mark.parametrize("stored", ["output.weight", "token_embd.weight"])
def test_of_an_embedding_stored_twice_the_finer_one_is_kept(
    stored: str, qwen2: Path, tmp_path: Path
) -> None:
    tensors = _tensors(qwen2)
    fine = tensors["token_embd.weight"]
    coarse = gguf.quantize(fine.astype(np.float32), Q4)
    other = "output.weight" if stored == "token_embd.weight" else "token_embd.weight"
    tensors |= {stored: fine, other: coarse}
    if other == "output.weight":
        tensors[other] = gguf.quantize(fine.astype(np.float32), Q8)
    convert(_write(tmp_path / "tiny.gguf", qwen2, tensors=tensors), tmp_path / "made")
    weights = load_file(tmp_path / "made/model.safetensors")
    assert "lm_head.weight" not in weights
    kept = weights["model.embed_tokens.weight"]
    assert torch.equal(kept, torch.tensor(fine).float().bfloat16())


def test_a_file_in_parts_is_read_whole(qwen2: Path, tmp_path: Path) -> None:
    """llama.cpp writes large models so, and publishers name the first part."""
    whole = _write(tmp_path / "tiny.gguf", qwen2)
    (tmp_path / "parts").mkdir()
    _write(tmp_path / "parts/tiny.gguf", qwen2, parts=10)
    first, second, *others = sorted((tmp_path / "parts").iterdir())
    assert others and first.name.startswith("tiny-00001-of-")
    expected = load_backbone(str(whole), device="cpu").model.state_dict()
    loaded = load_backbone(str(first), device="cpu")
    found = loaded.model.state_dict()
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())
    data = bytearray(second.read_bytes())
    data[-40] ^= 1
    second.write_bytes(data)
    assert load_backbone(str(first), weights=False).version != loaded.version
    with pytest.raises(CustosError, match=first.name):
        load_backbone(str(second), weights=False)
    others[0].unlink()
    with pytest.raises(CustosError, match=others[0].name):
        load_backbone(str(first), weights=False)


@pytest.mark.parametrize("moved", [0.1, 4.0])
def test_an_output_matrix_of_its_own_stays(moved: float, qwen2: Path, tmp_path: Path) -> None:
    """Also one that was the embedding before it was trained."""
    tensors = _tensors(qwen2)
    embedding = tensors["token_embd.weight"].astype(np.float32)
    noise = np.random.default_rng(0).standard_normal(embedding.shape)
    head = (embedding + moved * embedding.std() * noise).astype(np.float16)
    tensors["output.weight"] = head
    path = _write(tmp_path / "tiny.gguf", qwen2, tensors=tensors)
    model = load_backbone(str(path), dtype="float32", device="cpu").model
    assert not model.config.tie_word_embeddings
    expected = torch.tensor(head).float().bfloat16().float()
    assert torch.equal(model.lm_head.weight, expected)


def test_files_beside_it_do_not_count(qwen2: Path, tmp_path: Path) -> None:
    """Publishers put the tokenizer of another format, or of another model, into the same folder."""
    path = _write(tmp_path / "tiny.gguf", qwen2)
    for name in ("tokenizer.json", "vocab.json"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    load_backbone(str(path), weights=False)


def test_a_name_that_says_it_is_one_of_no_parts(qwen2: Path, tmp_path: Path) -> None:
    load_backbone(str(_write(tmp_path / "x-00003-of-00000.gguf", qwen2)), weights=False)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"chat_template": ""}, "there is none"),
        ({"chat_template": "{{ raise_exception('a\\nb') }}"}, "it fails: a b"),
        ({"kinds": gguf.TokenType.NORMAL}, "no control token"),
    ],
)
def test_a_file_that_no_prompt_can_be_written_for(
    fields: dict[str, Any],
    reason: str,
    qwen2: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is refused before its weights are converted."""
    monkeypatch.setattr(gguf_files, "_write_weights", None)
    assert reason in _error_of(_write(tmp_path / "tiny.gguf", qwen2, fields=fields))


def test_a_full_disk_is_no_fault_of_the_file(
    qwen2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library of tokenizers raises an ``Exception`` of no class of its own."""

    def write(*_: object) -> None:
        raise Exception("No space left on device (os error 28)")

    monkeypatch.setattr(gguf_files, "_write_tokenizer", write)
    with pytest.raises(OSError, match="No space left") as caught:
        load_backbone(str(_write(tmp_path / "tiny.gguf", qwen2)), weights=False)
    assert caught.value.filename == str(tmp_path / "cache")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architecture": "llama"}, "qwen3"),
        ({"scaling": "yarn"}, "yarn"),
        ({"more": {"rope.scaling.factor": 4.0}}, "scaled"),  # read as linear where no type is given
        ({"more": {"rope.scale_linear": 2.0}}, "scaled"),
        ({"more": {"attention.causal": False}}, "is_causal"),
        ({"fields": {"pre": "llama-bpe"}}, "llama-bpe"),
        ({"fields": {"tokenizer": "llama"}}, "llama"),
        ({"fields": {"rms_norm_eps": -1e-6}}, "rms_norm_eps"),
        ({"fields": {"rms_norm_eps": np.nan}}, "rms_norm_eps"),
        ({"fields": {"rope_theta": 0.0}}, "rope_theta"),
        ({"fields": {"rope_theta": np.nan}}, "rope_theta"),
    ],
)
def test_files_that_would_be_misread_are_refused(
    changes: dict[str, Any], named: str, qwen2: Path, tmp_path: Path
) -> None:
    path = _write(tmp_path / "tiny.gguf", qwen2, **changes)
    assert named in _error_of(path)


def test_other_weights_are_refused(qwen2: Path, tmp_path: Path) -> None:
    tensors = _tensors(qwen2)
    extra = tensors | {"blk.0.attn_q_norm.weight": np.ones(8, np.float32)}
    assert "attn_q_norm" in _error_of(_write(tmp_path / "more.gguf", qwen2, tensors=extra))
    less = {name: values for name, values in tensors.items() if "blk.1.ffn_up" not in name}
    assert "blk.1.ffn_up" in _error_of(_write(tmp_path / "less.gguf", qwen2, tensors=less))
    other = tensors | {"blk.0.attn_k.bias": np.ones(7, np.float32)}
    assert "attn_k.bias" in _error_of(_write(tmp_path / "other.gguf", qwen2, tensors=other))


@pytest.mark.parametrize(
    "fields",
    [
        {"num_hidden_layers": 10**9},  # which no machine could lay out
        {"num_hidden_layers": 1},
        {"num_attention_heads": 0},
        {"hidden_size": 0},
        {"tokenizer": "bert"},
    ],
)
def test_fields_that_no_model_can_have_are_refused(
    fields: dict[str, Any], qwen2: Path, tmp_path: Path
) -> None:
    _error_of(_write(tmp_path / "tiny.gguf", qwen2, fields=fields))


def test_a_tensor_of_a_kind_without_a_reading_is_refused(qwen2: Path, tmp_path: Path) -> None:
    tensors = _tensors(qwen2)
    tensors["blk.0.attn_q.weight"] = tensors["blk.0.attn_q.weight"].astype(np.int16)
    _error_of(_write(tmp_path / "tiny.gguf", qwen2, tensors=tensors))


@pytest.mark.parametrize("size", [0, 3, 200, -1000])
def test_a_damaged_file_is_refused(size: int, qwen2: Path, tmp_path: Path) -> None:
    path = _write(tmp_path / "tiny.gguf", qwen2)
    path.write_bytes(path.read_bytes()[:size])
    _error_of(path)


def _error_of(path: Path) -> str:
    with pytest.raises(CustosError) as caught:
        load_backbone(str(path), weights=False)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    assert not list((path.parent / "cache").glob("*/config.json")), "nothing half-made is used"
    return message
