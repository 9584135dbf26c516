"""A judge on the Hugging Face hub: its files, the header of its card, and their upload."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from judging.errors import CustosError
from judging.files.opening import load_yaml
from judging.judge import CALIBRATION_FILE
from judging.judge.card import CARD_FILE, JudgeCard, read_card, run_folder
from judging.judge.notes import KNOWS_NOTHING
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE
from judging.models.fetched import EMBEDDED, EMBEDDED_2, EMBEDDED_BASE, LICENSE
from judging.models.gguf_files import NAMED

README, REPORT = "README.md", "report.json"
NEEDED = (ADAPTER_FILE, ADAPTER_CONFIG, README)
"""Files without which a folder is no finished judge, besides its card."""
AS_THEY_ARE = (
    *(ADAPTER_FILE, ADAPTER_CONFIG, CARD_FILE, CALIBRATION_FILE),
    *("preprocessor_config.json", "recipe.yaml"),
)
PUBLISHED = (*AS_THEY_ARE, REPORT, README)
"""All files that a push may upload; of these, ones that a judge lacks are deleted on the hub."""
SUMMARY = (
    *("n", "questions", "coverage", "metrics", "per_class", "error_types", "pairs", "confusion"),
    *("baselines", "calibration", "statuses", "dataset_sha256", "seed", "resamples", "versions"),
)
"""Parts of a report that are figures alone; others can quote rows or name files."""


@dataclass(frozen=True)
class PublishedJudge:
    """A judge as it goes to the hub."""

    name: str
    files: dict[str, Path | bytes]
    """Name on the hub to a file, or to what is written for the hub."""
    header: str
    """Header of its ``README.md``, which the hub reads."""
    cautions: tuple[str, ...] = ()

    def sizes(self) -> dict[str, int]:
        """Count the bytes of every file."""
        return {
            name: len(content) if isinstance(content, bytes) else content.stat().st_size
            for name, content in self.files.items()
        }


def published_judge(
    source: str, *, license_id: str | None = None, allow_untested: bool = False
) -> PublishedJudge:
    """Gather what is published of a judge; checkpoints, logs and rows are not."""
    folder = run_folder(source)
    if folder is None:
        raise CustosError(
            f"'{source}': no judge: a folder with {CARD_FILE} is needed, as 'custos train' writes "
            f"it when it ends, or a name in 'custos judges'"
        )
    card = read_card(folder)
    if card.random_weights:
        raise CustosError(f"{folder}: {KNOWS_NOTHING}; train it on a real backbone to publish it")
    for name in NEEDED:
        if not (folder / name).is_file():
            raise CustosError(
                f"{folder}: {name} is missing: finish the run by giving its 'custos train' command "
                f"again"
            )
    report: dict[str, Any] | None = None
    if (path := folder / REPORT).is_file():
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            report["n"], report["metrics"]["accuracy"]["n"]
        except (ValueError, KeyError, TypeError):
            raise CustosError(
                f"{path}: not a report; delete it and give the 'custos train' command again"
            ) from None
    elif not allow_untested:
        raise CustosError(
            f"{folder}: the judge has no test report; write one with custos eval {folder} --data "
            f"FILE --out {folder}, or publish it without figures with --allow-untested"
        )
    name = folder.resolve().name
    text = (folder / README).read_text(encoding="utf-8")
    header, text = hub_readme(name, text, card, report, license_id)
    files: dict[str, Path | bytes] = {
        file: folder / file for file in AS_THEY_ARE if (folder / file).is_file()
    }
    if report:
        summary = {key: report[key] for key in SUMMARY if key in report}
        files[REPORT] = (json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode()
    files[README] = f"{header}\n{text}".encode()
    caution = (
        f"the judge is built on the folder '{card.backbone}'; whoever downloads it needs the same "
        f"checkpoint there, and {CARD_FILE}, {README} and recipe.yaml name the folder"
    )
    return PublishedJudge(name, files, header, () if base_model(card) else (caution,))


def check_repository(repository: str) -> None:
    """Raise ``CustosError`` unless a repository is ``OWNER/NAME`` in the hub's letters."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # lazy

    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise CustosError(f"REPO '{repository}': expected OWNER/NAME: {error}") from None
    if "/" not in repository:
        raise CustosError(
            f"REPO '{repository}': expected OWNER/NAME, where OWNER is your user name or "
            f"organisation on the hub"
        )


def push(judge: PublishedJudge, repository: str, *, private: bool) -> str:
    """Upload a judge in one commit, which the hub shows whole or not at all; return its address.

    The repository, ``OWNER/NAME``, is made if there is none. Files of an earlier push that this
    judge lacks, such as a calibration, are deleted, because they would change it.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

    token = get_token()
    if not token:
        raise CustosError(
            "no token of the hub: run 'hf auth login', or set HF_TOKEN to a token with write access"
        )
    hub = HfApi(token=token)
    try:
        hub.create_repo(repository, private=private or None, exist_ok=True)
        info = hub.model_info(repository)
        if private and not info.private:
            raise CustosError(
                f"'{repository}' is public already; nothing was uploaded; make it private in its "
                f"settings on the hub, or name another repository"
            )
        there = {file.rfilename for file in info.siblings or ()}
        hub.create_commit(
            repository,
            [
                *(CommitOperationAdd(name, content) for name, content in judge.files.items()),
                *(
                    CommitOperationDelete(name)
                    for name in PUBLISHED
                    if name in there and name not in judge.files
                ),
            ],
            commit_message=f"Upload the judge {judge.name} with custos {version('custos')}",
        )
    except CustosError:
        raise
    except Exception as error:  # noqa: BLE001 (the client raises errors of its HTTP library too)
        raise _refusal(error, repository, str(hub.endpoint), token) from None
    return f"{hub.endpoint}/{repository}"


def _refusal(error: Exception, repository: str, endpoint: str, token: str) -> CustosError:
    """Turn an error of the hub's client into one line that names the remedy."""
    from huggingface_hub.errors import HfHubHTTPError

    cause = error.__cause__ if isinstance(error.__cause__, HfHubHTTPError) else error
    reason = (str(error).strip() or type(error).__name__).replace(token, "...")
    if not isinstance(cause, HfHubHTTPError):
        return CustosError(
            f"{endpoint}: the upload failed: {reason}; check the network and HF_ENDPOINT, and give "
            f"the same command again"
        )
    status = cause.response.status_code
    settings = f"{endpoint}/settings/tokens"
    if status == 401:
        remedy = "the hub does not accept the token; run 'hf auth login', or set HF_TOKEN anew"
    elif status == 403:
        remedy = (
            f"the token may not write to '{repository}'; check the owner's name, or make a token "
            f"with write access at {settings} and run 'hf auth login'"
        )
    elif status == 404:
        remedy = f"there is no owner '{repository.partition('/')[0]}', or you may not see it"
    else:
        words = (cause.server_message or reason).replace(token, "...")
        remedy = f"the hub says: {words}; give the same command again later"
    return CustosError(f"{endpoint} ({status}): {remedy}")


METRICS = {
    "accuracy": "accuracy",
    "score_accuracy": "score accuracy",
    "type_accuracy": "error-type accuracy",
    "kappa": "Cohen's kappa",
    "ece": "calibration error",
}
"""Figures of the report that the hub shows, to their names there."""
BASE_LICENSES = {
    re.escape(EMBEDDED_BASE): LICENSE,
    **{re.escape(named.base_model): named.license for named in NAMED.values()},
    r"Qwen/Qwen2-VL-(2B|7B)-Instruct": "apache-2.0",
    r"Qwen/Qwen2\.5-VL-(7B|32B)-Instruct": "apache-2.0",
    r"Qwen/Qwen3-VL-(2B|4B|8B|32B|30B-A3B|235B-A22B)-(Instruct|Thinking)": "apache-2.0",
}
"""Patterns of base models to their licences, as the hub states them."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HEADER = re.compile(r"\A---\r?\n(.*?)^---\r?\n", re.DOTALL | re.MULTILINE)


def base_model(card: JudgeCard) -> str | None:
    """Name the model of the hub that a judge is built on; ``None`` for a folder's checkpoint."""
    if card.backbone in (EMBEDDED, EMBEDDED_2):
        return EMBEDDED_BASE
    if card.backbone in NAMED:
        return NAMED[card.backbone].base_model
    return card.backbone if _COMMIT.fullmatch(card.backbone_version) else None


def hub_readme(
    name: str,
    readme: str,
    card: JudgeCard,
    report: Mapping[str, Any] | None,
    license_id: str | None,
) -> tuple[str, str]:
    """Write the header of ``README.md`` that the hub reads, and the text below it.

    Keys of a header that the text already has stay, unless they are stated here. The licence, as
    the hub spells it, defaults to that of the text's header, then to that of the base model.
    """
    match = _HEADER.match(readme)
    header: Any = {}
    if match:
        try:
            header = load_yaml(match[1]) or {}
        except yaml.YAMLError as error:
            raise CustosError(f"README.md: its header is not YAML: {error}") from None
    if not isinstance(header, dict):
        raise CustosError("README.md: its header is not YAML of keys and values; delete it")
    base = base_model(card)
    of_base = (BASE_LICENSES[name] for name in BASE_LICENSES if re.fullmatch(name, base or ""))
    license_id = license_id or header.get("license") or next(of_base, None)
    if not license_id:
        raise CustosError(
            f"--license: the licence of '{base or Path(card.backbone).name}' is not known here; "
            "name the judge's licence as the hub spells it, such as apache-2.0"
        )
    stated = {
        "base_model": base,
        "license": license_id,
        "library_name": "peft",
        "tags": ["custos", "judge", "llm-as-a-judge", "lora", *card.tasks],
        **(_results(name, report) if report else {}),
    }
    kept = {key: value for key, value in header.items() if key not in ("metrics", "model-index")}
    merged = {**kept, **{key: value for key, value in stated.items() if value is not None}}
    text = yaml.safe_dump(merged, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n", (readme[match.end() :] if match else readme).lstrip()


def _results(name: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Write the figures on the test rows as the hub's ``model-index``, with n and interval."""
    results = []
    for metric, title in METRICS.items():
        measured = report["metrics"].get(metric)
        if not measured or measured["value"] is None:
            continue
        n, low, high = measured["n"], measured["low"], measured["high"]
        interval = "" if low is None else f", 95 % interval {low:.3f} to {high:.3f}"
        result = {
            "type": metric,
            "value": round(measured["value"], 4),
            "name": f"{title} (n = {n:,}{interval})",
            "args": {"n": n, "low": low and round(low, 4), "high": high and round(high, 4)},
        }
        results.append(result)
    data = (report.get("dataset_sha256") or "")[:12]
    num_rows = report["metrics"]["accuracy"]["n"]  # those with a label
    entry = {
        "task": {"type": "text-classification", "name": "grading answers as people do"},
        "dataset": {
            "type": "custos",
            "name": f"{num_rows:,} test rows" + (f" (SHA-256 {data})" if data else ""),
        },
        "metrics": results,
    }
    metrics = [result["type"] for result in results]
    return {"metrics": metrics, "model-index": [{"name": name, "results": [entry]}]}
