"""SimpleVQA's rules: whole words and whole numbers, and answers that are none."""

import pytest

from judging.tasks import get_task
from judging.types import JudgeRequest


@pytest.mark.parametrize(
    ("response", "reference", "conclusion"),
    [
        ("There were 24 ships.", "4", "Incorrect"),
        ("There were 4 ships.", "4", "Correct"),
        ("-7 degrees", "7", "Incorrect"),
        ("共有２４艘船。", "4", "Incorrect"),
        ("共有４艘船。", "4", "Correct"),
        ("这是故宫博物院。", "故宫", "Correct"),
        ("A German car", "Man", "Incorrect"),
        ("I do not know.", "No", "Not attempted"),
        ("No idea", "No", "Not attempted"),
        ("There is no way to tell.", "no", "Not attempted"),
        ("No, I cannot see one.", "No", "Correct"),
        ("不知道", "不", "Not attempted"),
        ("The painter is unknown", "unknown", "Correct"),
        ("Unknown", "Unknown", "Correct"),
        ("unknown", "Monet", "Not attempted"),
        ("Nobody", "", "Incorrect"),
        ("Vitamin C", "Vitamin A", "Incorrect"),
    ],
)
def test_conclusions(response: str, reference: str, conclusion: str) -> None:
    request = JudgeRequest(
        task="simplevqa", question="?", references=(reference,), responses=(response,)
    )
    assert get_task("simplevqa").label_by_rule(request) == conclusion
