from cli.shared.screen import in_columns


def test_cells_stand_below_each_other_without_trailing_blanks() -> None:
    rows = [("name", "n"), ("a", "12"), ("longest", "")]
    assert in_columns(rows) == ["name     n", "a        12", "longest"]
