"""Checkpoints in folders and on the hub: one line where they cannot be used, before weights."""

import errno
import json
import re
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from cli.main import app
from judging.errors import CustosError, Missing
from judging.models import checkpoints, fetched
from judging.models.backbones import load_backbone
from judging.models.checkpoints import SUPPORTED
from tests.conftest import HubFolders
from tests.hub import TEXT_TEMPLATE, shards
from tests.hub_server import COMMIT, hub_of, silent_hub
from tests.judging.models.made_up import edit, error_in, error_of

NAME = "Qwen3-VL-4B-Instruct"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt")
READ_AS_JSON = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"),
    *("chat_template.json", "generation_config.json"),
)


@pytest.fixture
def folder(hub_folders: HubFolders, tmp_path: Path) -> Path:
    return Path(shutil.copytree(hub_folders(NAME), tmp_path / "model"))


@pytest.mark.parametrize("family", ["llama", "llava", "gemma3", "qwen3_moe", "mystery"])
def test_other_families_are_refused_by_their_configuration_alone(
    tmp_path: Path, family: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}), encoding="utf-8")
    message = error_in(tmp_path)
    assert f"model type '{family}' is not supported" in message
    assert SUPPORTED in message


@pytest.mark.parametrize("weights", [True, False])
def test_code_of_a_checkpoint_is_never_run(folder: Path, weights: bool) -> None:
    (folder / "code.py").write_text("raise SystemExit('ran')", encoding="utf-8")
    edit(folder / "config.json", lambda c: c.update(auto_map={"AutoModel": "code.Model"}))
    with pytest.raises(CustosError, match="asks to run code of its own"):
        load_backbone(str(folder), device="cpu", weights=weights)


@pytest.mark.parametrize("kept", [0, 5, 300, -1])
def test_a_shard_that_is_cut_short(folder: Path, kept: int) -> None:
    shard = shards(folder)[1]
    shard.write_bytes(shard.read_bytes()[:kept])
    assert f"{shard.name}: damaged or cut short" in error_in(folder)


def test_a_weight_that_its_shard_or_no_shard_has(folder: Path) -> None:
    """The library would go on with random numbers."""
    shard = shards(folder)[1]
    tensors = load_file(shard)
    absent = sorted(tensors)[0]
    del tensors[absent]
    save_file(tensors, shard)
    assert f"{shard.name}: no tensor '{absent}'" in error_in(folder)
    edit(folder / "model.safetensors.index.json", lambda index: index["weight_map"].pop(absent))
    assert f"1 weights are missing, such as '{absent}'" in error_in(folder)


def test_a_configuration_with_fewer_layers(folder: Path) -> None:
    edit(folder / "config.json", lambda c: c["text_config"].update(num_hidden_layers=1))
    assert "have no place" in error_in(folder)
    edit(folder / "config.json", lambda c: c["text_config"].update(num_hidden_layers=2))
    edit(folder / "config.json", lambda c: c["vision_config"].update(depth=1))
    assert "'model.visual.blocks.1." in error_in(folder)


@pytest.mark.parametrize("name", ["config.json", "model-00001-of"])
def test_a_file_of_another_user(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No download would mend it."""

    def refuse(path: Path) -> None:
        if path.name.startswith(name):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(checkpoints, "refuse_lfs_pointer", refuse)
    with pytest.raises(PermissionError):
        load_backbone(str(folder), device="cpu")


@pytest.mark.parametrize("prefix", ["module.", "base_model.model."])
def test_weights_of_a_wrapped_model(
    folder: Path, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Say so in a line, without the library's table of all weights."""
    names: dict[str, str] = {}
    for shard in shards(folder):
        tensors = {f"{prefix}{name}": weight for name, weight in load_file(shard).items()}
        names |= dict.fromkeys(tensors, shard.name)
        save_file(tensors, shard)
    edit(folder / "model.safetensors.index.json", lambda index: index.update(weight_map=names))
    others = f"the files hold others, such as '{min(names)}': save the model itself"
    assert others in error_in(folder)
    assert caplog.records == []


def test_pickled_weights(folder: Path) -> None:
    for file in (*shards(folder), folder / "model.safetensors.index.json"):
        file.unlink()
    assert "no weights (model.safetensors" in error_in(folder)
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    message = error_in(folder)
    assert "pytorch_model.bin is a pickle" in message
    assert "safetensors only" in message


def test_an_index_that_is_none(folder: Path) -> None:
    for content in ("", "[]", "{}", '{"weight_map": 7}', '{"weight_map": {"a": ["b"]}}'):
        (folder / "model.safetensors.index.json").write_text(content, encoding="utf-8")
        assert "not an index of safetensors" in error_in(folder)


def test_files_of_newer_and_older_uploads(folder: Path) -> None:
    """A template in a jinja file counts only where there is no ``chat_template.json``."""
    older = folder / "chat_template.json"
    template = json.loads(older.read_text(encoding="utf-8"))["chat_template"]
    (folder / "chat_template.jinja").write_text(template + "{# new #}", encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    backbone = load_backbone(str(folder), device="cpu", weights=False)
    assert backbone.processor.chat_template == template
    assert len(backbone.tokenizer) > 400
    older.unlink()
    newer = load_backbone(str(folder), device="cpu", weights=False)
    assert newer.processor.chat_template == template + "{# new #}"


@pytest.mark.parametrize(
    ("removed", "wanted"),
    [
        (TOKENIZER, "no tokenizer_config.json, no tokenizer.json (or vocab.json and merges.txt);"),
        (("tokenizer_config.json",), "no tokenizer_config.json;"),
        (("tokenizer.json", "merges.txt"), "no tokenizer.json (or vocab.json and merges.txt);"),
        (("preprocessor_config.json",), "no preprocessor_config.json;"),
    ],
)
@pytest.mark.parametrize("weights", [True, False])
def test_missing_files_are_named(
    folder: Path, removed: tuple[str, ...], wanted: str, weights: bool
) -> None:
    """Without its files the library would make up a tokenizer of a few tokens."""
    for file in removed:
        (folder / file).unlink()
    with pytest.raises(Missing, match=re.escape(f"'{folder}': {wanted} copy what is missing")):
        load_backbone(str(folder), device="cpu", weights=weights)


@pytest.mark.parametrize("file", READ_AS_JSON)
def test_a_file_that_is_not_json(folder: Path, file: str) -> None:
    for content, reason in (
        (b"", "it is empty"),
        (b'{"cut', "Unterminated string"),
        (b"\xff\xfe{}", "invalid start byte"),
        (b"[" * 100_000, "maximum recursion depth"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
    ):
        (folder / file).write_bytes(content)
        message = error_in(folder)
        assert message.startswith(f"{folder / file}: ")
        assert reason in message
        assert message.endswith("download it again")


THINKS = "{{ '<|im_start|>assistant\\n<think>\\n' }}"


@pytest.mark.parametrize(
    ("file", "values", "reason"),
    [
        ("config.json", {"model_type": None}, "config.json without model_type"),
        ("config.json", {"model_type": ["qwen3_vl"]}, "model type '['qwen3_vl']' is not supp"),
        ("config.json", {"quantization_config": {"quant_method": "awq"}}, "quantized (awq)"),
        ("config.json", {"quantization_config": [1]}, "its weights are quantized"),
        ("config.json", {"text_config": []}, "config.json cannot be used"),
        ("config.json", {"text_config": {"num_attention_heads": 0}}, "config.json cannot be"),
        ("config.json", {"text_config": {"hidden_act": "nope"}}, "config.json cannot be used"),
        ("tokenizer.json", {"model": {"type": "none"}}, "tokenizer.json"),
        ("tokenizer_config.json", {"added_tokens_decoder": [1]}, "tokenizer_config.json"),
        ("preprocessor_config.json", {"size": "wide"}, "preprocessor_config.json"),
        ("chat_template.json", {"chat_template": None}, "no text under the key 'chat_template'"),
        (
            "chat_template.json",
            {"chat_template": TEXT_TEMPLATE.replace("m.content", "(m.content | string)")},
            "it leaves pictures out",
        ),
        (
            "chat_template.json",
            {"chat_template": "{% for _ in range(10**9) %}a{% endfor %}"},
            "the chat template cannot be used",
        ),
    ],
)
def test_values_that_make_no_backbone(
    folder: Path, file: str, values: dict[str, Any], reason: str
) -> None:
    edit(folder / file, lambda content: content.update(values))
    assert reason in error_in(folder)


def test_weights_of_other_shapes(folder: Path) -> None:
    edit(folder / "config.json", lambda c: c["text_config"].update(intermediate_size=24))
    assert "the weights do not have the shapes" in error_in(folder)


@pytest.mark.parametrize("token", ["<|im_start|>", "<|im_end|>"])
def test_a_tokenizer_without_the_tokens_of_a_turn(folder: Path, token: str) -> None:
    for path in map(folder.joinpath, TOKENIZER):
        path.write_text(path.read_text(encoding="utf-8").replace(token, "<|other|>"))
    assert f"no control token '{token}'" in error_in(folder)


def test_templates_that_make_other_turns_or_none(folder: Path) -> None:
    path = folder / "chat_template.json"
    template = json.loads(path.read_text(encoding="utf-8"))["chat_template"]
    for old, new, reason in (
        ("<|im_start|>", "[turn]", "without <|im_start|>"),
        ("{{ '<|im_start|>assistant\\n' }}", THINKS, "begins every answer with a thought"),
    ):
        path.write_text(json.dumps({"chat_template": template.replace(old, new)}))
        assert reason in error_in(folder)
    path.unlink()
    assert "copy chat_template.json" in error_in(folder), "the tokenizer's own is for text"
    edit(folder / "tokenizer_config.json", lambda c: c.pop("chat_template"))
    assert "there is none" in error_in(folder)
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    assert "chat_template.jinja cannot be used" in error_in(folder)
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("../../blobs/0a1b")
    assert "config.json is a link to nothing" in error_in(folder)


HUB_NAME = "lab/tiny-judge"
OLD, NEW = "a" * 40, "b" * 40
REFUSED = "http://127.0.0.1:9"

Use = Callable[..., None]


@pytest.fixture
def cache(folder: Path, tmp_path: Path) -> Path:
    """The hub's cache with two commits of a model; ``main`` is the newer one."""
    model = tmp_path / "hub" / "models--lab--tiny-judge"
    (model / "blobs").mkdir(parents=True)
    for commit in (OLD, NEW):
        snapshot = model / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for file in folder.iterdir():
            blob = model / "blobs" / f"{commit[0]}-{file.name}"
            shutil.copy(file, blob)
            (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(NEW, encoding="utf-8")
    return tmp_path / "hub"


def snapshot(cache: Path, commit: str) -> Path:
    return cache / "models--lab--tiny-judge" / "snapshots" / commit


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Set the cache and the address of the hub, or no hub."""

    def settings(cache: Path, address: str | None = None) -> None:
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", address is None)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", address or REFUSED)

    return settings


def version_of(name: str = HUB_NAME, version: str | None = None, *, weights: bool = False) -> str:
    return load_backbone(name, device="cpu", version=version, weights=weights).version


@pytest.mark.parametrize(
    ("version", "loaded"), [(None, NEW), ("unknown", NEW), (OLD, OLD), (NEW, NEW)]
)
def test_a_model_in_the_cache_is_loaded_by_its_commit(
    cache: Path, use: Use, version: str | None, loaded: str
) -> None:
    use(cache)
    assert version_of(version=version) == loaded


def test_a_missing_shard_in_the_cache(
    cache: Path, use: Use, capfd: pytest.CaptureFixture[str]
) -> None:
    use(cache)
    shard = shards(snapshot(cache, NEW))[1]
    count = len(shards(snapshot(cache, NEW)))
    shard.resolve().unlink()  # a download that was stopped
    result = CliRunner().invoke(app, ["backbone", HUB_NAME])
    assert (result.exit_code, result.stdout) == (2, "")
    line = f"{snapshot(cache, NEW)}': {shard.name} of {count} shards missing"
    assert line in result.stderr
    assert result.stderr.count("\n") == 1
    assert capfd.readouterr().err == "", "nothing that a library prints"


@pytest.mark.parametrize("hub", [lambda: nullcontext(REFUSED), silent_hub])
def test_a_hub_that_cannot_be_reached(
    hub: Callable[[], AbstractContextManager[str]],
    cache: Path,
    use: Use,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is in the cache is used; anything else ends in one line, within seconds."""
    monkeypatch.setattr(fetched, "SECONDS_TO_ANSWER", 1)
    with hub() as address:
        use(cache, address)
        started = time.perf_counter()
        message = error_of("lab/other")
        assert time.perf_counter() - started < 15, "the client alone would go on for longer"
        assert message.startswith("backbone 'lab/other' cannot be loaded (the hub says: ")
        assert version_of() == NEW
    assert capfd.readouterr().err == ""


def test_a_download(
    folder: Path, tmp_path: Path, use: Use, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files come once; the weights come when they are needed."""
    with hub_of(HUB_NAME, folder) as (address, fetched):
        use(tmp_path / "fresh", address)
        assert version_of() == COMMIT
        assert "tokenizer.json" in fetched
        assert not [file for file in fetched if file.endswith(".safetensors")]
        assert version_of(weights=True) == COMMIT
        assert sorted(fetched) == sorted(file.name for file in folder.iterdir())
        capfd.readouterr()
        assert version_of(weights=True) == COMMIT
        assert capfd.readouterr().err == "", "no bars where nothing is downloaded"
    use(tmp_path / "fresh")
    assert version_of(weights=True) == COMMIT


def test_weights_of_another_family_are_not_downloaded(
    folder: Path, tmp_path: Path, use: Use
) -> None:
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    with hub_of(HUB_NAME, folder) as (address, fetched):
        use(tmp_path / "fresh", address)
        assert "'lab/tiny-judge': model type 'llama' is not supported" in error_of(HUB_NAME)
    assert not [file for file in fetched if file.endswith(".safetensors")]


@pytest.mark.parametrize("name", [f"Qwen/Qwen3-4B@{OLD}", "Qwen/a..b", f"Qwen/{'x' * 99}"])
def test_a_name_that_no_model_of_the_hub_can_have(name: str, use: Use, tmp_path: Path) -> None:
    use(tmp_path)
    assert name in error_of(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Qwen2.5-Coder-0.5B", "'qwen2.5-coder-0.5b'"),
        ("qwen2.5-coder-1.5b@1", "'qwen2.5-coder-1.5b'"),
        ("models/absent.gguf", "no such file"),
        ("config.json", "no GGUF file"),
        ("ollama", "'ollama/x.gguf'"),
        ("adapter", "an adapter alone"),
    ],
)
def test_names_that_are_nearly_right(
    name: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("config.json", "ollama/x.gguf", "adapter/adapter_config.json"):
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).touch()
    message = error_of(name)
    assert name in message and hint in message


def test_a_folder_above_the_checkpoint(folder: Path) -> None:
    """Name the snapshot in a folder of the hub's cache, or the checkpoint of a run."""
    for name in ("checkpoint-20", "snapshots/0a1b"):
        above = folder.parent / name.replace("/", "-")
        below = above / name
        below.parent.mkdir(parents=True)
        shutil.copytree(folder, below)
        assert f"the folder has no config.json, but '{below}' has one" in error_in(above)
