import pytest

from data_prep.made.words.wordings import Wording, WordingSplit, question_wordings_of, wordings_of

WORDINGS = (Wording("a", "{x}"), Wording("b", "{x}!", held_out=True))


@pytest.mark.parametrize(
    ("split", "responses", "questions"),
    [("train", "a", "a"), ("test", "b", "ab"), ("all", "ab", "ab")],
)
def test_wordings_of_a_split(split: WordingSplit, responses: str, questions: str) -> None:
    assert [wording.id for wording in wordings_of(WORDINGS, split)] == list(responses)
    assert [wording.id for wording in question_wordings_of(WORDINGS, split)] == list(questions)
