"""Small made-up requests for the tests of this folder."""

from __future__ import annotations

from typing import Any

from judging.types import JudgeRequest


def ask(response: str = "Nineteen apples.", **fields: Any) -> JudgeRequest:
    """A quick-score request about apples."""
    given: dict[str, Any] = {
        "question": "How many apples are left?",
        "references": ("19",),
        "responses": (response,),
    }
    return JudgeRequest.model_validate(given | fields)
