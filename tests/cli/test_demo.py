"""``make demo``: its parts here in seconds, all of it as a slow test."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import torch

from cli import demo
from cli.demo import FULL, NEXT, SHORT, Plan, Screen
from judging.errors import CustosError
from tests.cli.made_up import custos
from tests.cli.prep.made_up import evouna_rows
from tests.cli.test_main import EVERY_VERB
from train.methods.focal import FocalRecipe
from train.setup.recipe import find_recipe, parse_recipe

QUICK = Plan(
    minutes=1,
    training=1,
    rows=700,
    unseen="it has seen none like them",
    overrides=("optim.max_steps=2",),
)


@pytest.mark.parametrize(
    ("known", "plan"), [({"avx512_bf16": True}, FULL), ({"avx2": True}, SHORT)]
)
def test_a_cpu_without_bfloat16_gets_the_short_plan(
    known: dict[str, bool], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    assert demo.plan_for_this_cpu() == plan


def test_only_the_folder_of_an_earlier_demo_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse a folder in which a user trained with the demo's recipe."""

    def stop(_: object) -> None:
        raise CustosError("the demo has begun")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "grade_three_answers", stop)
    judge = demo.JUDGE / "judge.json"
    judge.parent.mkdir(parents=True)
    judge.touch()
    refused = custos("demo")
    assert refused.exit_code == 2
    assert "runs/demo: the folder holds files of yours" in refused.stderr
    assert judge.exists()
    (demo.FOLDER / "demo.log").touch()
    assert "the demo has begun" in custos("demo").stderr
    assert not judge.exists()


@pytest.mark.parametrize("plan", [FULL, SHORT])
def test_the_recipe_takes_the_overrides_of_every_plan(plan: Plan) -> None:
    recipe = parse_recipe(FocalRecipe, find_recipe("embedded/demo"), plan.overrides)
    assert recipe.run.output == demo.JUDGE
    assert recipe.data.test == demo.FOLDER / "data" / "test.jsonl"
    assert plan.training < plan.minutes < 15


def test_the_recipe_says_how_its_data_is_made() -> None:
    header = find_recipe("embedded/demo").read_text(encoding="utf-8").replace("\\\n#", "")
    made = re.search(r"custos (prep synthetic .*)", header)
    assert made
    words = shlex.split(made[1])
    assert words[words.index("--rows") + 1] == str(FULL.rows)


def test_data_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = custos("demo", "--data", "NQ.json")
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "error: --data 'NQ.json': no such file" in result.stderr


def test_what_to_do_next_can_be_done() -> None:
    commands = [line.split("custos ")[1].split() for line in NEXT.splitlines() if "custos " in line]
    assert [words[0] for words in commands] == ["grade", "train", "serve", "judges"]
    for verb, *words in commands[:3]:
        known = {name for option in EVERY_VERB[f"custos {verb}"].params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known
    trained = commands[1][commands[1].index("--out") + 1]
    assert commands[2][-1] == f"mine={trained}"
    row = json.loads(re.search(r"\{.*\}", NEXT)[0])  # type: ignore[index]
    assert row["reference_mode"] == "any"


@pytest.mark.slow
def test_all_of_it_with_two_steps_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "plan_for_this_cpu", lambda: QUICK)
    (tmp_path / "runs" / "demo" / "judge").mkdir(parents=True)
    (tmp_path / "runs" / "demo" / "judge" / "old").write_text("of an earlier demo")
    (tmp_path / "runs" / "demo" / "demo.log").touch()
    source = tmp_path / "NQ.json"
    source.write_text(json.dumps(evouna_rows(30)), encoding="utf-8")
    demo.demo(data=source)
    output, errors = capfd.readouterr()
    assert errors == ""
    assert output.startswith("Three answers are graded, then a judge is trained")
    assert [line[:3] for line in output.splitlines() if re.match(r"\d/7  ", line)] == [
        f"{number}/7" for number in range(1, 8)
    ]
    assert re.search(r"Correct \(Correct 9\d\.\d%, Wrong .*Mary Ann Evans in 1871", output)
    assert re.search(r"Wrong   \(Correct .*Charlotte Bronte", output)
    assert "the trained judge" in output and "rule: a reference occurs" in output
    assert len(re.findall(r"named Wrong; .*true by construction: Wrong; ", output)) == 2
    assert output.endswith(f"{NEXT}\n")
    for noise in ("Warning", "<|im_start|>", "image_pad", "were not passed to", "INFO"):
        assert noise not in output, noise
    assert not (tmp_path / "runs" / "demo" / "judge" / "old").exists()
    address = re.search(r"http://127\.0\.0\.1:\d+", output)
    assert address
    with pytest.raises(httpx.ConnectError):  # the service is stopped
        httpx.get(address[0])


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    return Screen(tmp_path / "run" / "log", num_steps=2)


@pytest.mark.usefixtures("forking_python")
def test_what_a_command_prints_goes_to_the_log(
    screen: Screen, capfd: pytest.CaptureFixture[str]
) -> None:
    screen.run("custos", "recipe", "list")
    assert capfd.readouterr() == ("     $ custos recipe list\n", "")
    log = screen.log.read_text(encoding="utf-8")
    assert log.startswith("$ custos recipe list\nrecipe ")
    assert "embedded/demo" in log


@pytest.mark.usefixtures("forking_python")
def test_a_failed_command_is_named_with_its_last_line(screen: Screen) -> None:
    with pytest.raises(CustosError) as raised:
        screen.run("custos", "recipe", "show", "none/such")
    assert str(raised.value) == (
        "'custos recipe' failed: none/such: no such recipe; 'custos recipe list' names all; "
        f"all of it: {screen.log}"
    )


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """Make a program that the demo knows by a name."""

    def make(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setitem(demo.PROGRAMS, name, name)

    return make


def test_a_service_ends_with_the_block(screen: Screen, program: Callable[[str, str], None]) -> None:
    serve = "from http.server import *; s = HTTPServer(('127.0.0.1', 0), BaseHTTPRequestHandler)"
    say = "print(f'serving it at http://127.0.0.1:{s.server_port}', flush=True); s.serve_forever()"
    program("waiting", f"{serve}; {say}")
    program("ending", "raise SystemExit('error: it ends')")
    with screen.serving("waiting") as url:
        assert httpx.get(url).status_code == httpx.codes.NOT_IMPLEMENTED
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    with pytest.raises(CustosError, match="'ending' failed: it ends; all of it"):
        with screen.serving("ending"):
            pass
