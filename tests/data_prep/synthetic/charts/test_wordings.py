"""The tables of wordings, and how rows use them."""

from collections import defaultdict

from data_prep.made.charts.operations import GENERAL, operations_for
from data_prep.made.charts.responses import frames, questions, steps
from data_prep.made.charts.scenes import KINDS
from judging.types import LabelledExample
from tests.data_prep.examples import values_of

HELD_OUT = {frame.id for frame in frames() if frame.held_out}
HELD_OUT_STEPS = {step.id for step in steps() if step.held_out}
HELD_OUT_QUESTIONS = {question.id for question in questions() if question.held_out}


def test_there_are_at_least_forty_frames_and_ids_are_unique() -> None:
    assert len({frame.id for frame in frames()}) == len(frames()) >= 40
    for table in (steps(), questions()):
        assert len({wording.id for wording in table}) == len(table)


def test_every_family_and_operation_is_worded_on_both_sides() -> None:
    operations = {f.__name__ for kind in KINDS for f in operations_for(kind)}
    assert operations > {f.__name__ for f in GENERAL}
    families = {f.family for f in frames()}
    for held_out in (False, True):
        assert {f.family for f in frames() if f.held_out == held_out} == families
        assert {s.family for s in steps() if s.held_out == held_out} == operations
    assert {q.family for q in questions() if not (q.held_out or q.kind)} == operations


def test_held_out_wordings_never_occur_in_train(train_rows: list[LabelledExample]) -> None:
    assert values_of(train_rows, "form") == {frame.id for frame in frames()} - HELD_OUT
    assert not values_of(train_rows, "step") & HELD_OUT_STEPS
    assert not values_of(train_rows, "question_form") & HELD_OUT_QUESTIONS


def test_test_is_worded_in_held_out_wordings_only(test_rows: list[LabelledExample]) -> None:
    assert values_of(test_rows, "form") == HELD_OUT
    assert values_of(test_rows, "step") <= HELD_OUT_STEPS
    assert values_of(test_rows, "question_form") >= HELD_OUT_QUESTIONS


def test_reasoned_frames_do_not_give_the_label_away(train_rows: list[LabelledExample]) -> None:
    types: dict[str, set[str | None]] = defaultdict(set)
    for row in train_rows:
        types[row.metadata["form"]].add(row.error_type)
    for frame, error_types in types.items():
        if frame.startswith(("complete", "selected", "inline")):
            assert error_types == {None, "Reasoning Error", "Image Misunderstanding"}
        if frame.startswith(("bare", "label")):
            assert error_types == {None, "Other"}
