"""Which judge is meant by a name, which one answers, and in what form it takes a request."""

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError, FieldError
from judging.judge import Judge
from judging.judge.best_judge import Familiarity, choose_judge, familiarity
from judging.judge.card import (
    CARD_FILE,
    SHIPPED,
    JudgeCard,
    check_name,
    read_card,
    resolve,
    shipped_judges,
)
from judging.judge.notes import measured_note
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest, Mode
from tests.judging.made_up import card


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for run in ("runs/sheet", "runs/pairs", "mine"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / CARD_FILE).write_text("{}")


def refusal(name: str) -> str:
    with pytest.raises(CustosError) as caught:
        check_name(name)
    message = str(caught.value)
    assert message.startswith(f"judge '{name}': ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("embeded-qs", "embedded-qs"),
        ("embedded-pairs", "embedded-pair"),
        ("runs/sheets", "runs/sheet"),
        ("miné", "mine"),
        ("./runs/sheet2", "runs/sheet"),
    ],
)
def test_the_nearest_name_is_proposed(name: str, meant: str) -> None:
    message = refusal(name)
    assert f"did you mean '{meant}'?" in message
    assert ", ".join(shipped_judges()) in message
    assert "run folders here: " in message


@pytest.mark.parametrize("name", ["zzzzzz", "a/b/c", "/nowhere/at/all", "x" * 300])
def test_where_nothing_is_near_the_names_are_listed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*address: object, **options: object) -> None:
        raise AssertionError("a name that cannot be the hub's is not looked up")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    started = time.process_time()
    assert "did you mean" not in refusal(name)
    with pytest.raises(CustosError, match="did you mean 'embedded-qs'"):
        Judge.load("embeded-qs")
    assert time.process_time() - started < 1


def test_the_hub_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unreachable(url: str, **options: object) -> None:
        asked.append(url)
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    with pytest.raises(CustosError, match=r"'nobody/none' cannot be loaded \(the hub says: no rou"):
        Judge.load("nobody/none")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (None, "and config.json too, so that it is no model either"),
        ("checkpoint-000010/state", "its training has not ended"),
        ("adapter_model.safetensors", "copy the whole folder"),
        (f"inner/{CARD_FILE}", "it holds run folders: folder/inner; name one of them"),
    ],
)
def test_a_folder_says_what_it_lacks(file: str | None, says: str) -> None:
    Path("folder").mkdir()
    if file:
        Path("folder", file).parent.mkdir(exist_ok=True)
        Path("folder", file).touch()
    message = refusal("folder")
    assert "judge.json is missing, so that it is no run folder" in message
    assert says in message


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"tasks": {}}, "field 'tasks': no task"),
        ({"tasks": {"hieval-qs": []}}, "field 'tasks.hieval-qs': is empty"),
        ({"tasks": {"hieval-qs": ["zzz"]}}, "the instruction of 'hieval-qs/zzz' has changed"),
        ({"tasks": {"chartom-fact": ["zzz"]}}, "the instruction of 'chartom-fact/zzz' has changed"),
        ({"tasks": {"no-such": ["plain"]}}, "field 'task': 'no-such' is not one of"),
        ({"modes": {"hieval-qs/plain/any": []}}, "field 'modes.hieval-qs/plain/any': is empty"),
        ({"response_budget": 0}, "field 'response_budget': "),
    ],
)
def test_a_card_that_no_judge_can_have_is_one_error(
    tmp_path: Path, changed: dict[str, Any], fault: str
) -> None:
    values = json.loads((SHIPPED / "embedded-qs" / CARD_FILE).read_text())
    (tmp_path / CARD_FILE).write_text(json.dumps({**values, **changed}))
    with pytest.raises(CustosError, match=fault) as caught:
        read_card(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / CARD_FILE}: ")


def test_the_cards_of_shipped_judges_are_sound() -> None:
    for name in shipped_judges():
        assert read_card(SHIPPED / name).tasks


PAIR = {"task": "truthful-pair", "responses": ("a", "b")}
ANY, ALL, GRADED = ("plain/any",), ("plain/all",), ("plain/any-partial",)


def taken(known: JudgeCard | None, **fields: Any) -> JudgeRequest:
    request = {"question": "q", "references": ("r",), "responses": ("a",)} | fields
    tasks = tuple(known.tasks) if known else task_names()
    return resolve(JudgeRequest.model_validate(request), "mine", tasks, known)


@pytest.mark.parametrize(
    ("rubrics", "asked", "reference_mode"),
    [
        (ANY, "all", "any"),
        (ALL, "any", "all"),
        ((*ANY, *ALL), "all", "all"),
        ((*ANY, *ALL), "any", "any"),
        ((*ANY, *ALL), "any-partial", "all"),
        ((*ANY, *ALL, *GRADED), "any-partial", "any-partial"),
        (GRADED, "any", "any-partial"),
        (GRADED, "all", "any-partial"),
    ],
)
def test_one_reference_is_taken_in_the_mode_that_the_judge_knows(
    rubrics: tuple[str, ...], asked: str, reference_mode: str
) -> None:
    resolved = taken(card(hieval_qs=rubrics), reference_mode=asked)
    assert resolved.reference_mode == reference_mode
    assert resolve(resolved, "mine", ("hieval-qs",), card(hieval_qs=rubrics)) == resolved


@pytest.mark.parametrize(
    ("rubrics", "asked", "rubric"),
    [
        (GRADED, "any", "plain/any-partial"),
        ((*ANY, *GRADED), "any", "plain/any"),
        ((*ANY, *ALL), "any-partial", "plain/any-partial"),
        (ANY, "any-partial", None),
        (ALL, "any-partial", None),
        (GRADED, "all", None),
    ],
)
def test_three_levels_of_alternatives_are_taken_where_their_parts_are_known(
    rubrics: tuple[str, ...], asked: str, rubric: str | None
) -> None:
    def resolved() -> JudgeRequest:
        return taken(card(hieval_qs=rubrics), reference_mode=asked, references=("r", "s"))

    if rubric is None:
        with pytest.raises(FieldError, match="was trained for hieval-qs under"):
            resolved()
        return
    assert get_task("hieval-qs").rubric(resolved()) == rubric
    note = measured_note(card(hieval_qs=rubrics), resolved())
    assert (note is not None) == (rubric not in rubrics)


QS = card(hieval_qs=ANY)
REFERENCE, BOTH = card(truthful_pair=("reference",)), card(truthful_pair=("plain", "reference"))
OTHER_RUBRIC = (
    "^field 'variant': judge 'mine' was trained for hieval-qs under plain/any, not .*; take "
    "embedded-ea or embedded-qs or qwen-qs, which know it .--judge.*set variant to 'plain' and "
    "reference_mode"
)
NO_EA = r"for hieval-qs, not 'hieval-ea'; set task to .* or take a judge .*\(--judge embedded-ea\)$"


@pytest.mark.parametrize(
    ("known", "fields", "field", "message"),
    [
        (QS, {"variant": "strict"}, "variant", "'strict' is not one of plain$"),
        (None, {"variant": "strict"}, "variant", "'strict' is not one of plain, tolerance$"),
        (BOTH, PAIR | {"variant": "reference"}, "variant", "of plain; the rubric 'reference' foll"),
        (REFERENCE, PAIR | {"references": ()}, "references", "give a reference"),
        (card(truthful_pair=("plain",)), PAIR, "references", "leave the references out"),
        (QS, {"task": "hieval-ea"}, "task", NO_EA),
        (QS, {"references": ("r", "s")}, "reference_mode", "set reference_mode to 'any' .--ref"),
        (card(hieval_qs=ALL), {"variant": "tolerance"}, "variant", "set variant to 'plain'"),
        (QS, {"variant": "tolerance", "references": ("r", "s")}, "variant", OTHER_RUBRIC),
        (QS, {"task": "charthal"}, "task", r"\(--judge embedded, the untrained model\)$"),
    ],
)
def test_the_field_to_change_is_named(
    known: JudgeCard | None, fields: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(FieldError, match=message) as refused:
        taken(known, **fields)
    assert refused.value.field == field


TRAINED: dict[str, tuple[Mode, ...]] = {"truthful-pair/reference": ("score", "critique")}


@pytest.mark.parametrize(
    ("known", "fields", "mode"),
    [
        (None, PAIR, "score"),
        (REFERENCE, PAIR, "critique"),
        (REFERENCE, PAIR | {"mode": "score"}, "score"),
        (card(TRAINED, truthful_pair=("reference",)), PAIR, "score"),
        (QS, {}, "score"),
        (card(truthful_pure_label=("reference",)), PAIR | {"task": "truthful-pure-label"}, "score"),
    ],
)
def test_the_judges_own_mode(known: JudgeCard | None, fields: dict[str, Any], mode: Mode) -> None:
    assert taken(known, **fields).mode == mode


@pytest.mark.parametrize("name", task_names())
def test_a_zero_shot_judge_takes_every_task_in_every_variant(name: str) -> None:
    task = get_task(name)
    for variant in task.variants:
        fields = {"task": name, "variant": variant, "responses": ("a",) * task.num_responses}
        if name == "chartom-prediction":
            fields["references"] = ("0.3",)  # it takes a share or none
        if name == "criterion":
            fields["criteria"] = ("is short",)
        assert taken(None, **fields).mode == "score"


class Known(Judge):
    """A judge that is only asked what it knows."""

    def __init__(
        self, tasks: dict[str, tuple[str, ...]] | None, calibrated: tuple[str, ...] = ()
    ) -> None:
        self.name = "known"
        self.card = None
        if tasks:
            none = dict.fromkeys(("backbone", "backbone_version"), "none")
            self.card = JudgeCard(**none, tasks=tasks, instructions={})
        rubrics: Any = dict.fromkeys(calibrated)
        self.calibration: Any = type("Fitted", (), {"rubrics": rubrics}) if calibrated else None


ANY_QS: dict[str, tuple[str, ...]] = {"hieval-qs": ("plain/any",)}
# By name the judge of the second stage comes first; it knows quick scores from replay.
EA = Known({"hieval-ea": ("plain/any",), **ANY_QS}, ("hieval-ea/plain/any",))
CALIBRATED = Known(ANY_QS, ("hieval-qs/plain/any",))
TRAINED_QS = Known(ANY_QS)
ZERO_SHOT = Known(None)
OTHER = Known({"hieval-qs": ("plain/all",)})
PAIRS = Known({"truthful-pair": ("open",)})


def asked(**fields: Any) -> JudgeRequest:
    given = {"question": "q", "references": ("r",), "reference_mode": "any", "responses": ("a",)}
    return JudgeRequest.model_validate(given | fields)


def test_familiarity() -> None:
    judges = (PAIRS, OTHER, ZERO_SHOT, TRAINED_QS, CALIBRATED)
    levels = [familiarity(one, "hieval-qs", "plain/any") for one in judges]
    assert levels == [level for level in Familiarity if level != Familiarity.OTHER_REFERENCE_MODE]
    assert familiarity(EA, "hieval-qs", "plain/any") == Familiarity.TRAINED


def test_a_calibration_counts_for_the_way_of_reading_it_was_fitted_for() -> None:
    pair = {"task": "truthful-pair", "responses": ("a", "b"), "references": ()}
    plain = Known({"truthful-pair": ("plain",)}, ("truthful-pair/plain",))
    after = Known({"truthful-pair": ("plain",)}, ("truthful-pair/plain/critique",))
    judges = {"plain": plain, "after": after}
    assert choose_judge(judges, asked(**pair, mode="score")) == "plain"
    assert choose_judge(judges, asked(**pair, mode="critique")) == "after"
    assert choose_judge(judges, asked(**pair)) == "after", "both write critiques if not told"


@pytest.mark.parametrize(
    ("judges", "best"),
    [
        ({"ea": EA, "qs": CALIBRATED}, "qs"),
        ({"zero": ZERO_SHOT, "trained": TRAINED_QS}, "trained"),
        ({"zero": ZERO_SHOT, "other": OTHER}, "other"),
        ({"other": OTHER, "trained": TRAINED_QS}, "trained"),
        ({"pairs": PAIRS, "other": OTHER}, "other"),
        ({"one": TRAINED_QS, "two": TRAINED_QS}, "one"),
    ],
)
def test_the_judge_that_knows_the_rubric_best(judges: dict[str, Judge], best: str) -> None:
    assert choose_judge(judges, asked()) == best
    assert choose_judge(judges | {"ea": EA}, asked(task="hieval-ea")) == "ea"


def test_alternatives_are_not_judged_as_an_answer_set() -> None:
    several = asked(references=("r", "s"))
    assert choose_judge({"other": OTHER, "zero": ZERO_SHOT}, several) == "zero"
    with pytest.raises(CustosError, match="'known' was trained for hieval-qs under plain/all"):
        choose_judge({"other": OTHER}, several)


def test_two_responses_without_a_task_name_the_tasks_that_take_two() -> None:
    request = JudgeRequest(question="?", responses=("a", "b"))
    with pytest.raises(FieldError, match="the request names none.*truthful-pair"):
        choose_judge({}, request)
