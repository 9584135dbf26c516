"""``custos judges`` and ``custos push``, against a hub on a socket, one that refuses, and none."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import constants
from typer.testing import Result

from judging.judge.card import SHIPPED, shipped_judges
from tests.cli.made_up import custos, succeed
from tests.upload_hub import UploadHub, upload_hub


def test_lists_every_shipped_judge_with_its_figures() -> None:
    result = succeed("judges")
    heading, *rows = result.stdout.splitlines()
    assert "accuracy" in heading and "best baseline" in heading
    by_name = {row.split()[0]: row for row in rows if row}
    assert set(shipped_judges()) <= set(by_name)
    assert "hieval-qs" in by_name["embedded-qs"]
    assert "0.933 [0.900, 0.955]" in by_name["embedded-qs"]
    assert "0.030 (chance 0.029, up to 0.040)" in by_name["embedded-qs"]
    assert "logistic_overlap 0.879" in by_name["embedded-qs"]
    assert "need no training" not in result.stdout, "that regression is fitted on labels"


@pytest.mark.parametrize("name", shipped_judges())
def test_shows_the_figures_and_limits_of_one(name: str) -> None:
    result = succeed("judges", name)
    assert result.stdout.startswith(f"# {name}\n")
    assert "accuracy" in result.stdout
    assert "outside what it has seen" in result.stdout
    assert "custos prep" not in result.stdout


def test_an_unknown_judge() -> None:
    result = custos("judges", "embedded-xy")
    assert result.exit_code == 2
    assert "'embedded-xy': no shipped judge; there are embedded-benchmarks" in result.stderr


@pytest.mark.parametrize("name", shipped_judges())
def test_report_and_card_of_a_shipped_judge_say_the_same(name: str) -> None:
    report, card = (
        json.loads((SHIPPED / name / file).read_text(encoding="utf-8"))
        for file in ("report.json", "reliability.json")
    )
    for data in card["data"].values():
        if data["dataset_sha256"] == report["dataset_sha256"]:
            assert data["metrics"] == report["metrics"]
            both = data["baselines"].keys() & report["baselines"].keys()
            assert {each: data["baselines"][each]["accuracy"] for each in both} == {
                each: report["baselines"][each]["accuracy"] for each in both
            }


TOKEN = "hf_" + "s" * 34
REPOSITORY = "lab/my-judge"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[UploadHub]:
    with upload_hub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        yield hub


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    """A run folder with all that stays here: checkpoints, logs, rows, hashes of questions."""
    folder = tmp_path / "mine"
    shutil.copytree(SHIPPED / "embedded-qs", folder)
    (folder / "checkpoint-000400").mkdir()
    (folder / "checkpoint-000400" / "optimizer.bin").write_bytes(b"state")
    for name in ("train.log", "metrics.jsonl", "disagreements.csv", "question_hashes.bin"):
        (folder / name).write_text("a secret question")
    change(folder / "report.json", unscored={"a secret question": 1})
    return folder


def change(file: Path, **keys: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


def push(folder: Path | str, *options: str, repository: str = REPOSITORY) -> Result:
    result = custos("push", str(folder), repository, *options)
    assert TOKEN not in result.output
    return result


def error_of(*arguments: Any, **keywords: Any) -> str:
    result = push(*arguments, **keywords)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def header(readme: bytes) -> dict[str, Any]:
    start, text, _ = readme.decode().split("---\n", 2)
    assert start == ""
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def test_uploads_the_judge_and_nothing_else(hub: UploadHub, judge: Path) -> None:
    result = push(judge, "--private")
    assert result.exit_code == 0, result.output
    assert f"uploaded to {hub.address}/{REPOSITORY}" in result.stdout
    assert hub.private
    without_token = {key for key, sent in hub.tokens.items() if sent != f"Bearer {TOKEN}"}
    assert without_token <= {"/api/agent-harnesses"}  # a public list that huggingface_hub reads
    same = {"adapter_model.safetensors", "adapter_config.json", "judge.json", "calibration.json"}
    same |= {"preprocessor_config.json", "recipe.yaml"}
    assert set(hub.files) == same | {"report.json", "README.md"}
    for name in same:
        assert hub.files[name] == (judge / name).read_bytes(), name
    assert list(hub.large.values()) == [hub.files["adapter_model.safetensors"]]
    assert not any(b"secret" in content for content in hub.files.values())
    report = json.loads(hub.files["report.json"])
    assert report["metrics"] == json.loads((judge / "report.json").read_text())["metrics"]


def test_the_card_has_the_figures_with_their_intervals(hub: UploadHub, judge: Path) -> None:
    assert push(judge, "--license", "mit").exit_code == 0
    card = header(hub.files["README.md"])
    assert card["base_model"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert (card["license"], card["library_name"]) == ("mit", "peft")
    assert {"custos", "lora", "hieval-qs"} <= set(card["tags"])
    accuracy = card["model-index"][0]["results"][0]["metrics"][0]
    assert accuracy["args"] == {"n": 445, "low": 0.9004, "high": 0.9549}
    assert accuracy["name"] == "accuracy (n = 445, 95 % interval 0.900 to 0.955)"
    body = (judge / "README.md").read_text()
    assert hub.files["README.md"].decode().endswith(body)


def test_a_header_of_the_users_own_stays(hub: UploadHub, judge: Path) -> None:
    text = "---\nlicense: cc-by-4.0\nlanguage: en\nmodel-index: []\n---\n\n# mine\n"
    (judge / "README.md").write_text(text)
    assert push(judge).exit_code == 0
    card = header(hub.files["README.md"])
    assert (card["license"], card["language"]) == ("cc-by-4.0", "en")
    assert card["model-index"] and hub.files["README.md"].endswith(b"---\n\n# mine\n")


def test_a_second_push_deletes_what_the_judge_no_longer_has(hub: UploadHub, judge: Path) -> None:
    assert push(judge).exit_code == 0
    hub.files["LICENSE"] = b"of the owner"
    (judge / "calibration.json").unlink()
    (judge / "report.json").unlink()
    assert "no test report" in error_of(judge)
    assert push(judge, "--allow-untested").exit_code == 0
    assert {"calibration.json", "report.json"}.isdisjoint(hub.files)
    assert hub.files["LICENSE"] == b"of the owner"
    assert "model-index" not in header(hub.files["README.md"])


def test_a_dry_run_needs_neither_hub_nor_token(
    judge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("HF_TOKEN")
    result = push(judge, "--dry-run")
    assert result.exit_code == 0
    assert "adapter_model.safetensors       9,830,360" in result.stdout
    assert "license: apache-2.0" in result.stdout and "nothing was uploaded" in result.stdout
    assert "question_hashes" not in result.stdout


def test_without_a_token(hub: UploadHub, judge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert "no token of the hub: run 'hf auth login', or set HF_TOKEN" in error_of(judge)
    assert not hub.requests


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "run 'hf auth login'"), (403, "may not write to 'lab/my-judge'"), (500, "the hub says")],
)
def test_a_hub_that_refuses(hub: UploadHub, judge: Path, status: int, remedy: str) -> None:
    hub.status = status
    line = error_of(judge)
    assert remedy in line and str(status) in line
    assert not hub.files


def test_a_public_repository_is_not_taken_for_private(hub: UploadHub, judge: Path) -> None:
    hub.exists = True
    assert "is public already; nothing was uploaded" in error_of(judge, "--private")
    assert not hub.files


@pytest.mark.parametrize("name", ["judge", "a/b/c", "lab/", "lab/my judge", "lab/--x"])
def test_a_malformed_name(judge: Path, name: str) -> None:
    assert "expected OWNER/NAME" in error_of(judge, repository=name)


def test_what_is_no_judge_to_publish(judge: Path) -> None:
    assert "no judge: a folder with judge.json is needed" in error_of(judge / "checkpoint-000400")
    (judge / "adapter_model.safetensors").rename(judge / "kept")
    assert "adapter_model.safetensors is missing" in error_of(judge)
    (judge / "kept").rename(judge / "adapter_model.safetensors")
    (judge / "report.json").write_text("{}")
    assert "report.json: not a report" in error_of(judge)
    change(judge / "judge.json", random_weights=True)
    assert "it knows nothing" in error_of(judge, "--allow-untested")


def test_a_backbone_in_a_folder_or_without_a_known_licence(judge: Path) -> None:
    change(judge / "judge.json", backbone="/models/ours", backbone_version="0" * 16)
    assert "--license: the licence of 'ours' is not known" in error_of(judge)
    result = push(judge, "--license", "mit", "--dry-run")
    assert "base_model:" not in result.stdout
    assert "caution: the judge is built on the folder '/models/ours'" in result.stderr
    name = "Qwen/Qwen3-VL-4B-Instruct"
    change(judge / "judge.json", backbone=name, backbone_version="a" * 40)
    result = push(judge, "--dry-run")
    assert f"base_model: {name}\nlicense: apache-2.0" in result.stdout


def test_a_judge_without_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove its report, as a new calibration does."""
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "judge.json").write_text('{"tasks": {"hieval-qs": []}}')
    monkeypatch.setattr("judging.judge.card.SHIPPED", tmp_path)
    monkeypatch.setattr("cli.judges.SHIPPED", tmp_path)
    assert succeed("judges").stdout.splitlines()[1].split() == ["bare", "hieval-qs", *"-----"]
    result = custos("judges", "bare")
    assert result.exit_code == 2
    assert "README.md: this file of the judge is missing" in result.stderr


def test_a_hub_that_does_not_answer(judge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "check the network and HF_ENDPOINT" in error_of(judge)
