"""The HTML sheet, filled in with the keyboard in a browser and read back."""

import time
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image
from selenium.webdriver import ActionChains, Chrome, Keys

from data_prep.construction.forms.base import FORMS
from data_prep.construction.sheet_page import write_label_page
from data_prep.construction.sheets import item_name, read_table, write_sheet
from data_prep.construction.steps.base import Row
from judging.files.csv_rows import CsvFile, write_spreadsheet
from judging.types import JudgeRequest
from tests.data_prep.construction.made_up import question, response_rows

NASTY = "</script><img src=x onerror=document.title='owned'>"


def type_keys(browser: Chrome, *keys: str) -> None:
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def saved(folder: Path, name: str) -> Path:
    path, deadline = folder / name, time.monotonic() + 60
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, "nothing was saved"
        time.sleep(0.05)
    return path


def progress(browser: Chrome) -> str:
    return browser.find_element("id", "progress").text


def shows(browser: Chrome, text: str) -> None:
    deadline = time.monotonic() + 60
    while text not in browser.find_element("tag name", "body").text:
        assert time.monotonic() < deadline, f"not shown: {text}"
        time.sleep(0.05)


def open_page(browser: Chrome, page: Path, downloads: Path) -> None:
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
    )
    browser.get(page.as_uri())
    browser.execute_script("localStorage.clear()")  # which pages of one content share
    browser.refresh()


def test_a_page_is_filled_in_with_keys_and_read_back(browser: Chrome, tmp_path: Path) -> None:
    form, rows = FORMS.get("hieval-ea"), response_rows(3)
    Image.new("RGB", (2000, 30), "red").save(tmp_path / "a.png")
    rows[0] |= {"images": [str(tmp_path / "a.png")], "response": NASTY}
    page = tmp_path / "sheet.html"
    write_sheet(page, form, rows)
    assert "secret-model" not in page.read_text(encoding="utf-8")
    open_page(browser, page, tmp_path)
    assert browser.title == "hieval-ea"
    size = browser.execute_script("return document.querySelector('#shown img').naturalWidth")
    assert size == 1280
    assert NASTY in browser.find_element("id", "shown").text

    type_keys(browser, "s")
    assert "Fill in your name" in browser.find_element("id", "message").text
    type_keys(browser, *"=anna b", Keys.ENTER)
    type_keys(browser, "3", "4", Keys.ENTER)  # Wrong; Overthinking
    type_keys(browser, "1", Keys.ENTER)  # Correct
    type_keys(browser, "2", Keys.ENTER)  # Partial, without a type
    assert "What is the main cause? is not filled in." in browser.find_element("id", "message").text
    assert "Item 3 of 3, 2 finished" in browser.find_element("id", "progress").text
    type_keys(browser, "s")
    sheet = read_table(saved(tmp_path, "-anna-b.csv"), form)
    assert sheet.filled == {
        item_name(rows[0]["id"]): {"score": "Wrong", "error_type": "Overthinking"},
        item_name(rows[1]["id"]): {"score": "Correct"},
    }
    browser.refresh()  # what was filled in is still there, and the first open item is shown
    assert "Item 3 of 3, 2 finished" in browser.find_element("id", "progress").text
    assert browser.find_element("id", "annotator").get_property("value") == "=anna b"
    type_keys(browser, Keys.ARROW_LEFT, "n")
    assert "Item 3 of 3" in browser.find_element("id", "progress").text
    type_keys(browser, Keys.ARROW_LEFT, Keys.ARROW_LEFT, "1")  # a type goes with its score
    type_keys(browser, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    (tmp_path / "-anna-b.csv").unlink()
    type_keys(browser, "s")
    again = read_table(saved(tmp_path, "-anna-b.csv"), form)
    assert again.filled[item_name(rows[0]["id"])] == {"score": "Correct"}


def test_scores_tags_and_rationales(browser: Chrome, tmp_path: Path) -> None:
    form = FORMS.get("truthful-pair")
    rows = [{"id": "1", "question": "Boats?", "response_a": "Two.", "response_b": "Three."}]
    write_sheet(tmp_path / "pair.html", form, rows)
    open_page(browser, tmp_path / "pair.html", tmp_path)
    type_keys(browser, Keys.ARROW_DOWN, "9")  # score of A; no faults
    type_keys(browser, "1", "5", Keys.ARROW_DOWN, "q")  # two faults of B, and ten points
    type_keys(browser, "1")  # A is better
    words = ["=because", *["so"] * 58]
    browser.switch_to.active_element.send_keys(" ".join(words))
    type_keys(browser, Keys.ENTER, Keys.ENTER)
    assert "59 of 60 words" in browser.find_element("id", "message").text
    type_keys(browser, Keys.ARROW_UP, Keys.ARROW_DOWN, " indeed", Keys.ESCAPE)
    browser.find_element("id", "annotator").send_keys("ben", Keys.ENTER)
    type_keys(browser, "s")
    [filled] = read_table(saved(tmp_path, "ben.csv"), form).filled.values()
    assert filled == {
        "score_a": "9",
        "faults_b": ("visual misinterpretation", "distracting additions"),
        "score_b": "10",
        "better": "A",
        "rationale": " ".join([*words, "indeed"]),
    }
    log = browser.get_log("browser")  # type: ignore[no-untyped-call]  # selenium has no types for it
    assert not [line for line in log if line["level"] == "SEVERE"]


def test_what_is_there_is_corrected_in_place(browser: Chrome, tmp_path: Path) -> None:
    form = FORMS.get("charthal")
    rows: list[Row] = [
        {**question(n).model_dump(), "q_relation": "irrel", "question": "Q?", "ref_answer": "A."}
        for n in range(3)
    ]
    write_sheet(tmp_path / "charts.html", form, rows)
    open_page(browser, tmp_path / "charts.html", tmp_path)
    browser.find_element("id", "annotator").send_keys("cem", Keys.ENTER)
    type_keys(browser, "2", Keys.ENTER)  # discard the first
    type_keys(browser, "2", "1", "3")  # discard, then keep after all: an open question
    type_keys(browser, Keys.ARROW_DOWN, Keys.END, " Why?", Keys.ENTER, Keys.ESCAPE, "s")
    first, second = read_table(saved(tmp_path, "cem.csv"), form).filled.values()
    assert first == {"status": "discard"}
    assert second == {
        "status": "keep",
        "q_type": "open",
        "q_relation": "irrel",
        "question": "Q? Why?",
        "ref_answer": "A.",
    }


COLUMNS = ["question", "response", "label", "__proto__", "=own"]
HOSTILE = [
    "=1+1",
    "-2,5",
    "- an item",
    "x;=cmd",
    "\\N",
    "~'=1",
    'say "=1"',
    NASTY,
    "",
    "a\tb\nc",
    "１",
]


def label_page(
    folder: Path, modes: list[str], delimiter: str = ","
) -> tuple[Path, list[list[str]]]:
    rows, requests = [], []
    for number, mode in enumerate(modes):
        hostile = HOSTILE[number % len(HOSTILE)]
        rows.append([f"Q{number}?", hostile, "", f"own {number}", hostile])
        fields = {
            "question": "Q?",
            "references": ["a", "b"],
            "reference_mode": mode,
            "response": "a",
        }
        requests.append(JudgeRequest.model_validate({"id": "1", "task": "hieval-qs", **fields}))
    page = folder / "review.html"
    shown = ("question", "response")
    write_label_page(page, COLUMNS, rows, requests, "label", shown, delimiter=delimiter)
    return page, rows


def test_a_table_is_labelled_and_comes_back_as_it_was(browser: Chrome, tmp_path: Path) -> None:
    """Every row stays in the file, and each may have the labels of its own rubric only."""
    page, rows = label_page(tmp_path, ["all", "any"] * 6)
    open_page(browser, page, tmp_path)
    assert "own 0" not in browser.find_element("tag name", "body").text, "folded until opened"
    type_keys(browser, "p")  # Partial, by its first letter: the next row comes by itself
    assert "Item 2 of 12, 1 finished" in progress(browser)
    type_keys(browser, "3", "p")  # there is no third label, and no Partial
    assert "Item 2 of 12, 1 finished" in progress(browser)
    type_keys(browser, "2", "u")  # Wrong, and taken back
    assert "Item 2 of 12, 1 finished" in progress(browser)
    type_keys(browser, "1", "2", "c")
    browser.find_element("id", "annotator").send_keys("anna", Keys.ENTER)
    type_keys(browser, "s")
    file = CsvFile(saved(tmp_path, "anna.csv"))
    labels = ["Partial", "Correct", "Partial", "Correct", *[""] * 8]
    expected = [[*row[:2], label, *row[3:]] for row, label in zip(rows, labels, strict=True)]
    write_spreadsheet(tmp_path / "expected.csv", COLUMNS, expected)
    written = CsvFile(tmp_path / "expected.csv")
    assert file.columns == written.columns == tuple(COLUMNS)
    assert list(file.rows()) == list(written.rows())


def test_a_table_says_who_labelled_a_row_and_when_in_its_own_words(
    browser: Chrome, tmp_path: Path
) -> None:
    columns = ["q", "verdict", "by", "at"]
    fields = {"question": "Q?", "references": ["a"], "reference_mode": "any", "response": "a"}
    request = JudgeRequest.model_validate({"id": "1", "task": "hieval-qs", **fields})
    write_label_page(
        tmp_path / "page.html",
        columns,
        [["Q?", None, None, None]] * 2,
        [request] * 2,
        "verdict",
        ("q",),
        in_words={"Correct": "richtig", "Wrong": "falsch"}.__getitem__,
        stamps=("by", "at"),
        delimiter=";",
    )
    open_page(browser, tmp_path / "page.html", tmp_path)
    browser.find_element("id", "annotator").send_keys("Ana", Keys.ENTER)
    before = datetime.now(UTC).replace(microsecond=0)
    type_keys(browser, "f", "s")
    header, first, second = saved(tmp_path, "Ana.csv").read_text("utf-8-sig").splitlines()
    assert header == "q;verdict;by;at"
    assert first.startswith("Q?;falsch;Ana;") and second == "Q?;;;"
    assert before <= datetime.fromisoformat(first.split(";")[3]) <= datetime.now(UTC)


def test_two_tabs_do_not_overwrite_each_other(browser: Chrome, tmp_path: Path) -> None:
    page, _ = label_page(tmp_path, ["any"] * 4)
    open_page(browser, page, tmp_path)
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    try:
        browser.get(page.as_uri())
        type_keys(browser, "w")
        browser.switch_to.window(first)
        shows(browser, "Item 1 of 4, 1 finished")
        type_keys(browser, Keys.ARROW_RIGHT, "c")
        browser.switch_to.window(browser.window_handles[-1])
        shows(browser, "2 finished")
        type_keys(browser, Keys.ARROW_LEFT, "c")  # the first item again
        browser.switch_to.window(first)
        shows(browser, "2 finished")
        browser.find_element("id", "annotator").send_keys("cem", Keys.ENTER)
        type_keys(browser, "s")
        rows = CsvFile(saved(tmp_path, "cem.csv")).rows()
        labels = [row.get("label") for _, row in rows if isinstance(row, dict)]
        assert labels == ["Correct", "Correct", None, None]
    finally:
        browser.switch_to.window(browser.window_handles[-1])
        browser.close()
        browser.switch_to.window(first)


def test_nothing_is_undone_that_another_tab_changed_since(browser: Chrome, tmp_path: Path) -> None:
    page, _ = label_page(tmp_path, ["any"] * 3)
    open_page(browser, page, tmp_path)
    type_keys(browser, "w")
    browser.execute_script(
        "const key = Object.keys(localStorage).find((name) => name.endsWith(':1'));"
        "const at = Date.now() + 1e6;"
        "localStorage[key] = JSON.stringify({ values: { label: 'Correct' }, at });"
    )
    type_keys(browser, "u")
    shows(browser, "Another tab has changed this item since.")
    assert browser.find_element("css selector", "input:checked").get_property("value") == "Correct"


def test_another_content_of_the_same_rows_is_another_page(browser: Chrome, tmp_path: Path) -> None:
    form, rows = FORMS.get("hieval-qs"), response_rows(2)
    write_sheet(tmp_path / "sheet.html", form, rows)
    open_page(browser, tmp_path / "sheet.html", tmp_path)
    type_keys(browser, "1")
    assert "1 finished" in progress(browser)
    rows[0]["response"] = "Something else."
    write_sheet(tmp_path / "sheet.html", form, rows)
    browser.refresh()
    assert "0 finished" in progress(browser)


def test_a_phone_shows_all_and_is_filled_in_by_touch(browser: Chrome, tmp_path: Path) -> None:
    page, _ = label_page(tmp_path, ["all"] * 11)
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        open_page(browser, page, tmp_path)
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width == 390, "nothing is cut off"
        browser.find_element("css selector", "input[value=Wrong]").click()
        browser.find_element("id", "undo").click()
        browser.find_element("css selector", "input[value=Partial]").click()
        browser.find_element("id", "back").click()
        browser.find_element("id", "open").click()
        assert "Item 2 of 11, 1 finished" in progress(browser)
        buttons = browser.find_elements("css selector", "nav button, fieldset label")
        assert all(button.rect["height"] >= 44 for button in buttons), "wide enough for a thumb"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_file_is_kept_up_to_date(browser: Chrome, tmp_path: Path) -> None:
    page, _ = label_page(tmp_path, ["any"] * 2)
    open_page(browser, page, tmp_path)
    browser.execute_script(
        "window.showSaveFilePicker = async () => ({ name: 'anna.csv', createWritable: async () =>"
        " ({ write: async (text) => (window.written = text), close: async () => {} }) });"
    )
    browser.find_element("id", "annotator").send_keys("anna", Keys.ENTER)
    browser.find_element("id", "pick").click()
    shows(browser, "anna.csv: 0 of 2 items saved.")
    type_keys(browser, "w")
    shows(browser, "anna.csv: 1 of 2 items saved.")
    assert "Q0?,~'=1+1,Wrong," in browser.execute_script("return window.written")


def test_a_browser_that_keeps_nothing_says_so(browser: Chrome, tmp_path: Path) -> None:
    page, _ = label_page(tmp_path, ["any"] * 2)
    full = "Storage.prototype.setItem = () => { throw new DOMException('full'); };"
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": full})
    try:
        open_page(browser, page, tmp_path)
        type_keys(browser, "w")
        shows(browser, "This browser keeps nothing of this page.")
        assert "1 finished" in progress(browser)
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        browser.execute_script("window.onbeforeunload = null; isKept = true")
