"""Twins and contrasts: one response under two pictures."""

from collections import defaultdict

from data_prep.made.charts.operations import twin_operations_for
from data_prep.made.charts.rows import PlannedRow, draw_pictures
from data_prep.made.charts.scenes import KINDS
from judging.types import LabelledExample


def test_twins_share_all_text_and_the_answer_but_not_the_picture(twins: list[PlannedRow]) -> None:
    for first, second in zip(twins[::2], twins[1::2], strict=True):
        pair = (first.example, second.example)
        for field in ("question", "responses", "references", "group"):
            assert getattr(pair[0], field) == getattr(pair[1], field)
        assert {row.error_type for row in pair} == {"Reasoning Error", "Image Misunderstanding"}
        assert pair[0].metadata["twin"] == pair[1].metadata["twin"] == pair[0].group
        assert first.style == second.style
        assert first.scene.names == second.scene.names and first.scene != second.scene


def test_twins_come_in_many_templates_and_both_orders(twins: list[PlannedRow]) -> None:
    templates = {(row.scene.kind, row.example.metadata["operation"]) for row in twins}
    assert len(templates) >= 40
    assert {kind for kind, _ in templates} == set(KINDS)
    assert {operation for _, operation in templates} == {
        operation.__name__ for operation in twin_operations_for("line")
    }
    assert {row.example.error_type for row in twins[::2]} == {
        "Reasoning Error",
        "Image Misunderstanding",
    }


def test_pictures_of_twins_differ(twins: list[PlannedRow]) -> None:
    for first, second in zip(*[iter(draw_pictures(twins[:24]))] * 2, strict=True):
        assert first.png != second.png
        assert first.example.images != second.example.images


def test_contrasts_share_their_response(train_rows: list[LabelledExample]) -> None:
    pairs = defaultdict(list)
    for row in train_rows:
        if "contrast" in row.metadata:
            pairs[row.group].append(row)
    assert len(pairs) > 20
    for rows in pairs.values():
        assert {row.label for row in rows} == {"Correct", "Wrong; Image Misunderstanding"}
        assert len({(row.question, row.response) for row in rows}) == 1
