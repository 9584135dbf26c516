"""TruthfulJudge's screens: pairs with faults and scores, and scores of up to four responses.

The paper has one screen for pairs and one for scores (appendix D.2). Here that for pairs asks for
scores, too, as the paper's protocol has every rater give both (section 5.1). A response may have
several faults, as in Figure 7; the text of section 5.1 says one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Any

from data_prep.construction.forms.base import NO_NEED, Entry, Filled, Form, agreed_values, form
from data_prep.construction.steps.base import WORDS, Row
from data_prep.errors import UnusableText
from data_prep.sources.conversations import MEANINGS, PAIR_TASK
from judging.errors import FieldError
from judging.tasks.truthful import TIE, A, B

SCORES: Mapping[str, str] = WORDS["scores"]
"""Eleven anchors (Figure 8 and Table 3, which name them differently; the words are ours)."""
SCORE_MARGIN = 4
"""Scores that differ by at least this go to a third person."""
MIN_RATIONALE_WORDS = 60
KEEP_FROM, BORDERLINE_FROM = 7, 5
LETTERS = "ABCD"
"""Names of the responses on a screen of scores, four at most (Figure 8)."""
NOT_SCORED = "not scored"


def quality_of(score: float) -> str:
    """Say what a response of this score is good for: ``keep``, ``borderline``, ``exclude``."""
    if score >= KEEP_FROM:
        return "keep"
    return "borderline" if score >= BORDERLINE_FROM else "exclude"


def _score(response: str, *, required: bool = True) -> Entry:
    return Entry(
        f"score_{response.lower()}",
        f"How good is response {response}?" + ("" if required else " (if there is one)"),
        options=SCORES,
        margin=SCORE_MARGIN,
        required=required,
    )


def _faults(response: str) -> Entry:
    prompt = f"Which faults does response {response} have?"
    return Entry(f"faults_{response.lower()}", prompt, "choices", options=MEANINGS, required=False)


_RATIONALE = Entry("rationale", "Why?", "text", min_words=MIN_RATIONALE_WORDS, compared=False)
_BETTER = Entry(
    "better",
    "Which response is better?",
    options={A: "", B: "", TIE: "no preference: almost the same quality"},
)


class TruthfulForm(Form):
    """Form that both screens share: responses by letter, and people's scores and reasons."""

    headings = {"question": "Question", "references": "Reference answer"}

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show question, reference and the responses; their models stay hidden."""
        named = {f"Response {letter}": text for letter, text in self.responses(row).items()}
        return {**super().shown(row), **named}

    def responses(self, row: Row) -> dict[str, str]:
        """Name the responses of a row by letter."""
        return dict(zip(LETTERS, map(str, row["responses"]), strict=False))

    def about(
        self, row: Row, fillings: Mapping[str, Filled], letters: Iterable[str], **more: Any
    ) -> dict[str, Any]:
        """Add people's reasons, mean scores, and what these are good for, to a row's metadata."""
        scores = {
            letter: mean(float(str(each[f"score_{letter.lower()}"])) for each in fillings.values())
            for letter in letters
        }
        return {
            **(row.get("metadata") or {}),
            "rationale": "\n".join(str(filled["rationale"]) for filled in fillings.values()),
            **more,
            "scores": scores,
            "quality": {letter: quality_of(score) for letter, score in scores.items()},
        }


@form
class TruthfulPair(TruthfulForm):
    """Comparison of two responses by two people, and by a third where they differ."""

    name = task = PAIR_TASK
    summary = "which of two responses is better, with faults and scores of each"
    guide = (
        "If exactly one response is right, it is the better one. Only if both are right or both "
        "are wrong do the rest decide: how exactly the picture is read, whether what is said is "
        "true, whether the question is answered without digression, how clear and complete it is. "
        "Say why in at least 60 words, with strengths and weaknesses of both."
    )
    entries = (_faults(A), _score(A), _faults(B), _score(B), _BETTER, _RATIONALE, NO_NEED)

    def responses(self, row: Row) -> dict[str, str]:
        """Name both responses of a row by letter."""
        both = row.get("responses") or [row.get("response_a"), row.get("response_b")]
        if len(both) != 2 or None in both:
            raise FieldError("responses", "expected two", f"row '{row['id']}'")
        return dict(zip((A, B), map(str, both), strict=True))

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Make a labelled example of the pair, with faults, scores and reasons by response."""
        values = agreed_values(fillings)
        faults = {letter: list(values.get(f"faults_{letter.lower()}", ())) for letter in (A, B)}
        return {
            **row,
            "task": PAIR_TASK,
            "label": values["better"],
            "tags": [f"{letter}: {fault}" for letter in (A, B) for fault in faults[letter]],
            "annotators": list(fillings),
            "metadata": self.about(row, fillings, (A, B), faults=faults),
        }


@form
class TruthfulScores(TruthfulForm):
    """Scores of up to four responses to a question by two people, and a third where they differ."""

    name = "truthful-scores"
    summary = "how good is each of up to four responses, from 0 to 10?"
    guide = (
        "Score every response on its own, by the anchors: is what it says true, does it fit the "
        "picture, is its reasoning sound, is it well written? Say why in at least 60 words."
    )
    needs = ("question", "responses")
    entries = (
        *(_score(letter, required=letter == LETTERS[0]) for letter in LETTERS),
        _RATIONALE,
        NO_NEED,
    )

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Add the mean score of each response, and what it is good for."""
        letters = list(self.responses(row))
        for person, filled in fillings.items():
            scored = [letter for letter in LETTERS if f"score_{letter.lower()}" in filled]
            if scored != letters:
                detail = f"{person} scored {', '.join(scored)} of {', '.join(letters)}"
                raise UnusableText(NOT_SCORED, detail)
        metadata = self.about(row, fillings, letters)
        return {**row, "annotators": list(fillings), "metadata": metadata}
