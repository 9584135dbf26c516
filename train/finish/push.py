"""A judge on the Hugging Face hub: which files of its folder are published, and their upload."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.judge import CALIBRATION_FILE
from judging.judge.card import CARD_FILE, JudgeCard, read_card, run_folder
from judging.judge.notes import KNOWS_NOTHING
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE
from train.finish.hub_card import base_model, hub_readme

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
    readme: str
    cautions: tuple[str, ...] = ()

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes."""
        return {
            name: len(content) if isinstance(content, bytes) else content.stat().st_size
            for name, content in self.files.items()
        }


def published_judge(
    source: str, *, license_id: str | None = None, allow_untested: bool = False
) -> PublishedJudge:
    """Gather what is published of a judge; checkpoints, logs and rows are not.

    Args:
        source: Run folder, judge folder or name of a shipped judge.
        license_id: Licence as the hub spells it; default that of the base model.
        allow_untested: Whether a judge without a test report is taken too.

    Raises:
        CustosError: If there is no finished judge, it is built on random weights, it has no test
            report, or its licence is not known.
    """
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
    report = _read_report(folder, allow_untested)
    name = folder.resolve().name
    text = (folder / README).read_text(encoding="utf-8")
    readme = hub_readme(name, text, card, report, license_id)
    files: dict[str, Path | bytes] = {
        file: folder / file for file in AS_THEY_ARE if (folder / file).is_file()
    }
    if report:
        summary = {key: report[key] for key in SUMMARY if key in report}
        files[REPORT] = (json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode()
    files[README] = readme.encode()
    return PublishedJudge(name, files, readme, tuple(_cautions(card)))


def _read_report(folder: Path, allow_untested: bool) -> dict[str, Any] | None:
    path = folder / REPORT
    if not path.is_file():
        if allow_untested:
            return None
        raise CustosError(
            f"{folder}: the judge has no test report; name data.test in its recipe and train "
            f"again, or publish it without figures with --allow-untested"
        )
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        report["n"], report["metrics"]["accuracy"]["n"]
    except (ValueError, KeyError, TypeError):
        raise CustosError(
            f"{path}: not a report; delete it and give the 'custos train' command again"
        ) from None
    return report


def _cautions(card: JudgeCard) -> list[str]:
    if base_model(card):
        return []
    return [
        f"the judge is built on the folder '{card.backbone}'; whoever downloads it needs the same "
        f"checkpoint there, and {CARD_FILE}, {README} and recipe.yaml name the folder"
    ]


def check_repository(repository: str) -> None:
    """Check the name of a repository.

    Raises:
        CustosError: If it is not ``OWNER/NAME`` in the hub's letters.
    """
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
    """Upload a judge in one commit, which the hub shows whole or not at all.

    The repository is made if there is none. Files of an earlier push that this judge lacks, such
    as a calibration, are deleted, because they would change it.

    Args:
        judge: What is uploaded.
        repository: ``OWNER/NAME``.
        private: Whether only its owner may see it.

    Returns:
        The address of the repository.

    Raises:
        CustosError: If there is no token, the hub refuses or does not answer, or the repository is
            public and should be private.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

    check_repository(repository)
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
    """Return an error of the hub's client as one line that names the remedy."""
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
