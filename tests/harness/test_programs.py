"""The programs of the tools in their environments (``make harness``), with a judge that is sure."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict

import pytest

from judging import JudgeRequest, Verdict
from tests.harness.__main__ import CASES, WORST, cell, conclusions, failing, matrix
from tests.harness.program import PAGE, Outcome, Row, blocks, of_score
from tests.harness.tools import CLIENT, TOOLS, Tool
from tests.serve.chat.made_up import RIGHT, KnowingJudge
from tests.serve.sockets import serving_judges

NAMES = ("George Eliot", "Jane Austen")


class SureJudge(KnowingJudge):
    """Says that a response is right if it names nobody but whom the reference or criterion names.

    So it falls for a forged one.
    """

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        expected = " ".join(request.references or request.criteria)
        named = {name for name in NAMES if name in request.response}
        is_right = named and all(name in expected or "any answer" in expected for name in named)
        if is_right:
            request = request.model_copy(update={"responses": (next(iter(RIGHT)),)})
        return super().verdict_on(request, confidence)


BY_OTHER_NAMES = {"trl": "TRL"}
"""Tools that the page spells in another way."""
WITHOUT_GLUE = {"openai"}


def tools() -> list[object]:
    """Every tool, skipped where its environment is not built."""
    return [
        pytest.param(
            tool,
            id=tool.name,
            marks=pytest.mark.skipif(
                not tool.python.exists(), reason=f"make harness TOOL={tool.name}"
            ),
        )
        for tool in TOOLS.values()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("tool", tools())
def test_a_tool_passes_what_the_judge_does_and_nothing_else(tool: Tool) -> None:
    with serving_judges({"sure": SureJudge()}) as url:
        rows = conclusions(tool, url)
    assert {row.case for row in rows} == set(CASES) - {"no verdict"}
    ends = defaultdict[tuple[str, str], set[str]](set)
    for row in rows:
        ends[row.way, row.case].add(row.outcome)
        if row.outcome == "error" and row.case in tool.errors.get(row.way, ()):
            continue
        assert row.outcome == ("pass" if row.case == "right" else "fail"), row
    for way, cases in tool.errors.items():
        assert all("error" in ends[way, case] for case in cases)
    assert ("glue" in {row.way for row in rows}) == (tool.name not in WITHOUT_GLUE)


@pytest.mark.slow
@pytest.mark.parametrize("tool", tools())
def test_a_tool_passes_nothing_without_a_verdict(tool: Tool) -> None:
    with failing() as url:
        rows = conclusions(tool, url, "right")
    assert {row.outcome for row in rows} == {"error"}, rows


def test_the_page_has_an_example_for_every_tool() -> None:
    for name in TOOLS.keys() - WITHOUT_GLUE:
        [example] = blocks(BY_OTHER_NAMES.get(name, name))
        assert f"from custos.integrations.{name} import" in example
        compile(example, name, "exec")


def test_the_page_names_the_packages_that_the_client_needs() -> None:
    [command] = re.findall(r"^pip install (anyio .*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert shlex.split(command) == list(CLIENT)


def test_the_matrix_shows_the_worst_of_several_answers() -> None:
    outcomes: tuple[Outcome, ...] = ("fail", "error", "pass")
    rows = [Row("glue", "hostile", outcome, "", 0.25) for outcome in outcomes]
    assert cell(rows, "hostile") == "pass"
    assert cell(rows[:2], "hostile") == "error"
    assert cell(rows[:1], "hostile") == "fail"
    assert cell(rows, "right") == "-"
    own = Row("GEval", "right", "partial", "", 0.5)
    [_, _, glue, other] = matrix({"deepeval": [*rows, own]}).splitlines()
    assert glue == "| deepeval 4.3.1 | glue | - | - | - | - | pass | - | 250 |"
    assert "`custos/" in other and "| 0.5 |" in other
    assert len(set(WORST)) == 4


@pytest.mark.parametrize(
    ("score", "outcome"),
    [(None, "error"), (float("nan"), "error"), (0, "fail"), (0.99, "partial"), (1, "pass")],
)
def test_only_the_full_score_passes(score: float | None, outcome: str) -> None:
    assert of_score(score) == outcome
