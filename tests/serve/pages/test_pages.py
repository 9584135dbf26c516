"""The pages as a browser shows them: a real service on a real socket, with a made-up judge."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from evaluation.report.reliability import remove_figures
from judging import JudgeRequest, Verdict
from judging.types import Pass
from serve.calls import waiting
from serve.pages.routes import card
from serve.queue.service import Service
from tests.browser import browser as browser
from tests.serve.made_up import FakeJudge, card_of
from tests.serve.sockets import serving, wait_until
from tests.tiny import save_picture

KEY = "a-key-for-these-tests-0123456789"
TASKS = ("hieval-qs", "truthful-pair")
NASTY = "</script><img src=x onerror=document.title='owned'><b>bold</b>"


class PageJudge(FakeJudge):
    """Prefers A, whichever response that is."""

    def __init__(self) -> None:
        super().__init__("fake", TASKS)

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        verdict = super().verdict_on(request, confidence)
        if request.task != "truthful-pair":
            return verdict
        posterior = {"A": 0.7, "B": 0.2, "None": 0.1}
        critique = NASTY if request.mode == "critique" else None
        orders = ("given", "swapped") if request.order == "both" else ("given",)
        passes = tuple(Pass(order=o, posterior=posterior, critique=critique) for o in orders)
        return verdict.model_copy(
            update={
                **{"label": "A", "probabilities": posterior, "passes": passes},
                **{"needs_review": request.order == "both", "critique": critique},
            }
        )


@pytest.fixture
def judge() -> PageJudge:
    return PageJudge()


@pytest.fixture
def client(judge: PageJudge) -> Iterator[httpx.Client]:
    with serving(Service({"fake": judge})) as client:
        yield client


def open_empty(browser: Chrome, client: httpx.Client) -> None:
    """Open the playground and clear the example that it opens with."""
    open_page(browser, client)
    browser.find_element(By.ID, "clear").click()


def open_page(browser: Chrome, client: httpx.Client, path: str = "/", width: int = 1200) -> None:
    browser.set_window_size(width, 1000)
    browser.get_log("browser")  # type: ignore[no-untyped-call]  # what earlier tests left
    browser.get(f"{str(client.base_url).rstrip('/')}{path}")
    # On a busy machine get() may return before deferred scripts have run.
    WebDriverWait(browser, 30).until(
        lambda _: browser.execute_script("return document.readyState") == "complete"
    )


def field(browser: Chrome, name: str) -> WebElement:
    return browser.find_element(By.NAME, name)


def wait_for(browser: Chrome, text: str) -> str:
    def shown(_: Any) -> bool:
        return text in browser.find_element(By.ID, "answer").text

    try:
        WebDriverWait(browser, 60).until(shown)
    except TimeoutException:
        log = browser.get_log("browser")  # type: ignore[no-untyped-call]
        text_now = browser.find_element(By.ID, "answer").text
        raise AssertionError(f"expected {text!r}, found {text_now!r}; browser: {log}") from None
    return browser.find_element(By.ID, "answer").text


def assert_quiet(browser: Chrome) -> None:
    """Nothing was blocked by the policy, missing or broken."""
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("path", ["/", "/pages/judges", "/pages/queue"])
def test_pages_allow_nothing_from_elsewhere(client: httpx.Client, path: str) -> None:
    page = client.get(path)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text)
    assert not re.search(r"<script(?! type=\"application/json\")[^>]*>[^<]", page.text)
    assert " style=" not in page.text and not re.search(r"\son\w+=", page.text)


def test_only_the_pages_own_files_are_given_out(client: httpx.Client) -> None:
    assert client.get("/pages/static/style.css").headers["content-type"].startswith("text/css")
    for name in ("routes.py", "..%2froutes.py", "%2e%2e/routes.py", "nothing.js"):
        assert client.get(f"/pages/static/{name}").status_code == 404


def test_pages_ask_for_the_key(judge: PageJudge, browser: Chrome) -> None:
    with serving(Service({"fake": judge}), keys=[KEY]) as client:
        for path in ("/", "/pages/judges", "/pages/queue.json", "/pages/static/style.css"):
            refused = client.get(path)
            assert refused.status_code == 401
            assert "Basic" in refused.headers["WWW-Authenticate"]
        # As if typed into the browser's own question, once.
        address = str(client.base_url).rstrip("/")
        browser.get(address.replace("//", f"//any:{KEY}@") + "/")
        open_page(browser, client)
        browser.find_element(By.ID, "example").click()
        field(browser, "question").send_keys(Keys.CONTROL, Keys.ENTER)
        wait_for(browser, "Correct")
        assert "Bearer $CUSTOS_KEY" in browser.find_element(By.ID, "curl").text
        assert KEY not in browser.page_source


def test_a_response_is_judged_by_keyboard_alone(
    client: httpx.Client, browser: Chrome, judge: PageJudge
) -> None:
    open_empty(browser, client)
    field(browser, "question").send_keys("What is the capital of France?", Keys.TAB)
    browser.switch_to.active_element.send_keys("Paris", Keys.ENTER, " City of Paris ", Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys("It is Paris.", Keys.CONTROL, Keys.ENTER)
    text_shown = wait_for(browser, "Fingerprint")
    assert text_shown.startswith("Correct\nStatus: scored. Confidence 89.9 %.")
    [bar, _] = browser.find_elements(By.CSS_SELECTOR, "#answer progress")
    assert float(str(bar.get_attribute("value"))) == pytest.approx(0.899)
    [request] = judge.seen
    assert request.references == ("Paris", "City of Paris")
    assert (request.reference_mode, request.response) == ("any", "It is Paris.")
    browser.find_element(By.ID, "clear").click()
    assert browser.find_element(By.ID, "answer").text == ""
    assert not browser.find_element(By.ID, "calls").is_displayed()
    assert_quiet(browser)


def test_a_pair_with_a_picture_is_judged_in_both_orders(
    client: httpx.Client, browser: Chrome, judge: PageJudge, tmp_path: Path
) -> None:
    open_page(browser, client)
    Select(field(browser, "task")).select_by_visible_text("truthful-pair")
    browser.find_element(By.ID, "clear").click()
    assert not field(browser, "response").is_displayed()
    field(browser, "question").send_keys("Is it green?")
    field(browser, "response_a").send_keys("Yes.")
    field(browser, "response_b").send_keys(NASTY)
    picture = save_picture(tmp_path / "a.png", 40, 30)
    browser.find_element(By.ID, "pictures").send_keys(picture)
    assert browser.find_element(By.CSS_SELECTOR, "#thumbs img").is_displayed()
    Select(field(browser, "mode")).select_by_visible_text("after a critique")
    browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
    text_shown = wait_for(browser, "Fingerprint")
    assert (
        "The two orders disagree" in text_shown and "Swapped: A and B change places" in text_shown
    )
    assert text_shown.count(NASTY) == 2  # shown as text, never as markup
    assert browser.title == "Playground · custos"
    assert len(browser.find_elements(By.CSS_SELECTOR, "#answer progress")) == 9
    [request] = judge.seen
    assert (request.mode, request.order, request.responses) == ("critique", "both", ("Yes.", NASTY))
    assert request.images[0].startswith("data:image/png;base64,")
    assert_quiet(browser)


def test_the_page_waits_for_a_critique_that_takes_long(
    client: httpx.Client, browser: Chrome, judge: PageJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "HEARTBEAT_S", 0.1)
    judge.gate.clear()
    try:
        open_page(browser, client)
        Select(field(browser, "task")).select_by_visible_text("truthful-pair")
        Select(field(browser, "mode")).select_by_visible_text("after a critique")
        browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
        wait_until(lambda: judge.batches != [])
        time.sleep(1)
    finally:
        judge.gate.set()
    wait_for(browser, "Fingerprint")
    assert_quiet(browser)


def test_what_the_judge_was_not_trained_on_cannot_be_chosen(browser: Chrome) -> None:
    narrow = PageJudge()
    narrow.card = card_of({"hieval-qs": ("plain/all", "tolerance/any")})
    narrow.known_tasks = ("hieval-qs",)
    with serving(Service({"one": narrow, "every": PageJudge()})) as client:
        open_page(browser, client)
        Select(field(browser, "judge")).select_by_visible_text("one")

        def modes() -> dict[str, tuple[bool, bool]]:
            radios = browser.find_elements(By.NAME, "reference_mode")
            return {
                str(r.get_attribute("value")): (r.is_enabled(), r.is_selected()) for r in radios
            }

        no = (False, False)
        assert modes() == {"any": no, "any-partial": no, "all": (True, True)}
        browser.find_element(By.ID, "example").click()
        assert modes() == {"any": no, "any-partial": no, "all": (True, True)}
        Select(field(browser, "variant")).select_by_visible_text("tolerance")
        assert modes() == {"any": (True, True), "any-partial": no, "all": no}
        why = browser.find_element(By.ID, "why-mode").text
        reason = "is grey: one was not trained for it in hieval-qs; every was."
        assert why.endswith(f" “all references together” {reason}") and why.count(reason) == 2
        Select(field(browser, "judge")).select_by_visible_text("every")
        assert all(enabled for enabled, _ in modes().values())
        assert_quiet(browser)


def test_it_opens_on_the_headline_judge_with_an_example_to_judge(browser: Chrome) -> None:
    pairs, headline = PageJudge(), PageJudge()
    pairs.card = card_of({"truthful-pair": ("reference",), "hieval-qs": ("tolerance/any",)})
    headline.card, headline.known_tasks = card_of({"hieval-qs": ("plain/any",)}), ("hieval-qs",)
    with serving(Service({"pairs": pairs, "headline": headline})) as client:
        open_page(browser, client)
        assert Select(field(browser, "judge")).first_selected_option.text == "headline"
        grey = browser.find_element(By.ID, "why-variant").text
        assert grey == (
            "“tolerance” is grey: headline was not trained for it in hieval-qs; pairs was."
        )
        assert not Select(field(browser, "variant")).options[1].is_enabled()
        browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
        text_shown = wait_for(browser, "Fingerprint")
        assert text_shown.startswith("Correct")
        assert "Judged by headline under the rubric hieval-qs/plain/any." in text_shown
        Select(field(browser, "judge")).select_by_visible_text("pairs")
        assert field(browser, "variant").get_attribute("value") == "tolerance"
        Select(field(browser, "task")).select_by_visible_text("truthful-pair")
        assert field(browser, "response_b").get_attribute("value")
        assert not field(browser, "reference_mode").is_displayed()
        browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
        wait_for(browser, "Judged by pairs under the rubric truthful-pair/reference")
        assert pairs.seen[-1].mode == "critique"  # its own, as none was chosen
        assert_quiet(browser)


def test_criteria_are_asked_where_the_task_needs_them_and_then_no_question(browser: Chrome) -> None:
    judge = PageJudge()
    judge.known_tasks = ("criterion", "hieval-qs")
    with serving(Service({"any": judge})) as client:
        open_page(browser, client)
        assert not field(browser, "criteria").is_displayed()
        Select(field(browser, "task")).select_by_visible_text("criterion")
        assert "thanks the reader\n" in str(field(browser, "criteria").get_attribute("value"))
        browser.find_element(By.ID, "clear").click()
        field(browser, "criteria").send_keys("is short\nis polite")
        field(browser, "response").send_keys("No, thank you.")
        browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
        wait_for(browser, "Fingerprint")
        [request] = judge.seen
        assert (request.question, request.criteria) == ("", ("is short", "is polite"))
        assert_quiet(browser)


def test_the_calls_to_copy_work(client: httpx.Client, browser: Chrome, judge: PageJudge) -> None:
    open_empty(browser, client)
    question = 'What\'s """the"\\ capital?'
    field(browser, "question").send_keys(question)
    field(browser, "references").send_keys("Paris")
    field(browser, "response").send_keys("Paris")
    browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
    wait_for(browser, "Fingerprint")
    curl = browser.find_element(By.ID, "curl").get_property("textContent")
    answer = subprocess.run(["bash", "-c", str(curl)], capture_output=True, check=True)
    assert json.loads(answer.stdout)["label"] == "Correct"
    python = str(browser.find_element(By.ID, "python").get_property("textContent"))
    printed = subprocess.run([sys.executable, "-c", python], capture_output=True, check=True)
    assert printed.stdout.strip() == b"Correct"
    assert [request.question for request in judge.seen] == [question] * 3


@pytest.mark.parametrize("path", ["/", "/pages/judges", "/pages/queue"])
def test_a_phone_needs_no_sideways_scrolling(
    client: httpx.Client, browser: Chrome, path: str
) -> None:
    open_page(browser, client, path, width=500)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
    )
    wide = "return document.documentElement.scrollWidth - window.innerWidth"
    assert browser.execute_script(wide) <= 0
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert_quiet(browser)


def test_a_shipped_judge_shows_its_report(judge: PageJudge, browser: Chrome) -> None:
    judge.name, judge.folder = "embedded-qs", Path("judges/embedded-qs")
    report = json.loads((judge.folder / "report.json").read_text("utf-8"))
    with serving(Service({"qs": judge})) as client:
        open_page(browser, client, "/pages/judges", width=1280)
        line = browser.find_element(By.CSS_SELECTOR, "tbody tr").text
        browser.find_element(By.CSS_SELECTOR, "tbody a").click()  # opens what is folded
        [_, row, *_] = browser.find_elements(By.CSS_SELECTOR, "tbody tr")
        regions = browser.find_elements(By.CSS_SELECTOR, ".scroll")
        hidden = "return arguments[0].scrollWidth - arguments[0].clientWidth"
        assert [browser.execute_script(hidden, each) for each in regions] == [0] * len(regions)
        assert row.text.startswith("embedded-qs")
        accuracy = report["metrics"]["accuracy"]
        for text_shown in (line, row.text):
            assert f"{accuracy['value']:.3f}" in text_shown
            assert f"[{accuracy['low']:.3f}" in text_shown
    assert line.startswith("qs hieval-qs")
    assert "restated question 0.051" in " ".join(line.split())  # its worst attack


def test_the_queue_is_live(client: httpx.Client, browser: Chrome, judge: PageJudge) -> None:
    open_page(browser, client, "/pages/queue")
    assert browser.find_element(By.ID, "state").text == "ready"
    body = {"question": "q", "references": ["r"], "response": "r"}
    client.post("/judge", json=body).raise_for_status()
    counter = browser.find_element(By.CSS_SELECTOR, "[data-counter=answered]")
    WebDriverWait(browser, 60).until(lambda _: counter.text == "1")
    assert_quiet(browser)


SHIPPED = Path(__file__).parents[3] / "judges" / "embedded-qs"


def test_the_report_is_that_of_the_judge_s_own_folder(tmp_path: Path) -> None:
    report = json.loads((SHIPPED / "report.json").read_text())
    folder = tmp_path / "embedded-qs"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps({**report, "n": 7}))
    shutil.copy(SHIPPED / "README.md", folder)
    judge = FakeJudge("embedded-qs")
    assert card("qs", judge)["n"] is None  # only its name is that of the shipped one
    judge.folder = folder
    fields = card("qs", judge)
    assert (fields["name"], fields["n"]) == ("qs", 7)
    assert fields["rows"][0]["name"] == "embedded-qs"
    assert fields["unmeasured"] == []
    remove_figures(folder, (), "own.jsonl")  # as custos calibrate does
    calibrated = card("qs", judge)
    assert calibrated["about"] == fields["about"] and len(calibrated["about"]) > 20
    report["slices"]["task"] = {"charthal/irrelevant": {}}
    (folder / "report.json").write_text(json.dumps(report))
    assert card("qs", judge)["unmeasured"] == ["hieval-qs"]


def test_a_card_repeats_the_cautions_of_its_data_sets() -> None:
    judge = FakeJudge("embedded-qs")
    judge.folder = SHIPPED
    measured = json.loads((SHIPPED / "reliability.json").read_text())["data"]
    fields = card("qs", judge)
    wanted = [f"{name}: {text}" for name in measured for text in measured[name]["cautions"]]
    assert wanted and set(wanted) <= set(fields["cautions"])
    assert "**" not in str(fields["notes"])
