"""Names of judges that are none: what was probably meant, without a model and without a network."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import CARD_FILE, shipped_judges
from judging.judge.names import check_name


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for run in ("runs/sheet", "runs/pairs", "mine"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / CARD_FILE).write_text("{}")


def refusal(name: str) -> str:
    with pytest.raises(CustosError) as caught:
        check_name(name)
    message = str(caught.value)
    assert message.startswith(f"judge '{name}': ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("embeded-qs", "embedded-qs"),
        ("embedded-pairs", "embedded-pair"),
        ("embeded", "embedded"),
        ("runs/sheets", "runs/sheet"),
        ("miné", "mine"),
        ("./runs/sheet2", "runs/sheet"),
    ],
)
def test_the_nearest_name_is_proposed(name: str, meant: str) -> None:
    message = refusal(name)
    assert f"did you mean '{meant}'?" in message
    assert ", ".join(shipped_judges()) in message
    assert "run folders here: " in message


@pytest.mark.parametrize("name", ["zzzzzz", "gpt2", "a/b/c", "/nowhere/at/all", "x" * 300])
def test_where_nothing_is_near_the_names_are_listed(name: str) -> None:
    assert "did you mean" not in refusal(name)


def test_an_unknown_name_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*address: object, **options: object) -> None:
        raise AssertionError("a name without a slash is not looked up")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    started = time.process_time()
    with pytest.raises(CustosError, match="did you mean 'embedded-qs'"):
        Judge.load("embeded-qs")
    assert time.process_time() - started < 1


def test_the_hub_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unreachable(url: str, **options: object) -> None:
        asked.append(url)
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    with pytest.raises(CustosError, match=r"'nobody/none' cannot be loaded \(the hub says: no rou"):
        Judge.load("nobody/none")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (None, "and config.json too, so that it is no model either"),
        ("checkpoint-000010/state", "its training has not ended"),
        ("adapter_model.safetensors", "copy the whole folder"),
        (f"inner/{CARD_FILE}", "it holds run folders: folder/inner; name one of them"),
    ],
)
def test_a_folder_says_what_it_lacks(file: str | None, says: str) -> None:
    Path("folder").mkdir()
    if file:
        Path("folder", file).parent.mkdir(exist_ok=True)
        Path("folder", file).touch()
    message = refusal("folder")
    assert "judge.json is missing, so that it is no run folder" in message
    assert says in message


@pytest.mark.parametrize("name", ["embedded", "embedded@2", "Qwen/Qwen3-VL-4B-Instruct"])
def test_names_of_backbones_pass(name: str) -> None:
    check_name(name)
