"""The command line says how many labels a wanted interval needs."""

from typing import Any

from typer.testing import CliRunner

from cli.main import app


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["bench", *arguments])


def test_a_plan_asks_for_fewer_labels_of_a_good_judge() -> None:
    wanted = ("--half-width", ".05", "--items", "2000", "--sensitivity", ".9")
    lines = run("plan", *wanted, "--specificity", ".9").stdout.splitlines()
    with_judge, alone = (int(line.rpartition(" ")[2]) for line in lines)
    # 1.96^2 / 4 / .05^2 = 384 labels by the plain formula; Wilson's interval takes a few less.
    assert with_judge < 0.6 * alone
    assert 375 <= alone <= 385
    useless = run("plan", *wanted, "--specificity", ".1").stdout.splitlines()
    assert useless[0].rpartition(" ")[2] == useless[1].rpartition(" ")[2]
    assert run("plan", *wanted[:3], "1", *wanted[4:], "--specificity", ".9").exit_code == 2
