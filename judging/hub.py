"""The Hugging Face hub: whether it answers, asked once.

Its libraries would try for half a minute to reach it.
"""

from __future__ import annotations

from dataclasses import dataclass

SECONDS_TO_ANSWER = 5


@dataclass(frozen=True)
class HubAnswer:
    """What the hub says about a file."""

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
