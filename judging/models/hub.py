"""Models on the Hugging Face hub: found in its cache here, or downloaded.

Whether the hub answers is asked once: its libraries would try for half a minute to reach it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from judging.errors import CustosError, Missing
from judging.models.checkpoints import check_checkpoint, check_weight_files, missing_backbone

SECONDS_TO_ANSWER = 5
_OTHER_FILES = ["*.json", "*.jinja", "*.txt"]
_WEIGHT_FILES = ["*.safetensors"]


@dataclass(frozen=True)
class HubAnswer:
    """Answer of the hub about a file."""

    commit: str | None = None
    """Commit that the file belongs to, if the hub has the file."""
    refusal: str = ""
    """Why the hub does not give it, in one line; empty if it does."""


def ask_hub(
    name: str, file: str, *, revision: str | None = None, repo_type: str | None = None
) -> HubAnswer:
    """Ask the hub about a file of a model or a data set.

    Args:
        name: ``OWNER/NAME``.
        file: Name of the file. A hub that has the model but no such file does not refuse.
        revision: Commit or branch; default the main branch.
        repo_type: ``dataset``; default a model.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    try:
        url = hf_hub_url(name, file, revision=revision, repo_type=repo_type)
        return HubAnswer(commit=get_hf_file_metadata(url, timeout=SECONDS_TO_ANSWER).commit_hash)
    except EntryNotFoundError:
        return HubAnswer()
    except Exception as error:  # noqa: BLE001 (the client raises errors of its HTTP library too)
        reason = str(error).strip() or type(error).__name__
        return HubAnswer(refusal=reason.splitlines()[0])


def snapshot_folder(name: str, revision: str, *, weights: bool) -> Path:
    """Return the folder of a model in the hub's cache; what is missing there is downloaded.

    If the hub does not answer, the model is looked for in the cache alone.

    Args:
        name: ``OWNER/NAME``.
        revision: Commit or branch. A branch stands for its newest commit, or for the newest in the
            cache if the hub does not answer.
        weights: Whether the weights are needed too.

    Raises:
        Missing: If the hub does not give the model and the cache has none, or not all of it.
        CustosError: If it is not a backbone that custos can load, or a file is broken.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    answer = ask_hub(name, "config.json", revision=revision)
    snapshot = partial(snapshot_download, name, ignore_patterns=["*/*"])  # "*" matches "/" too
    try:
        # Without a look into the cache first, the library shows bars even if it downloads nothing.
        folder = Path(
            snapshot(
                revision=answer.commit or revision,
                allow_patterns=_OTHER_FILES + _WEIGHT_FILES * weights,
                local_files_only=True,
            )
        )
        check_checkpoint(name, folder, weights=weights)
        return folder
    except LocalEntryNotFoundError:
        if answer.refusal:
            raise missing_backbone(name, f"the hub says: {answer.refusal}") from None
    except Missing:
        if answer.refusal:
            raise
    try:
        folder = Path(snapshot(revision=revision, allow_patterns=_OTHER_FILES))
        check_checkpoint(name, folder, weights=False)  # before gigabytes are downloaded
        if weights:
            snapshot(revision=folder.name, allow_patterns=_WEIGHT_FILES)
            check_weight_files(folder)
    except CustosError:
        raise
    except Exception as error:  # noqa: BLE001 (as in ask_hub)
        raise missing_backbone(name, f"the hub says: {error}") from None
    return folder
