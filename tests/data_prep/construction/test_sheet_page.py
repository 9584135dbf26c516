"""The HTML sheet, filled in with the keyboard in a browser and read back."""

from __future__ import annotations

import time
from pathlib import Path

from PIL import Image
from selenium.webdriver import ActionChains, Chrome, Keys

from data_prep.construction.forms.base import FORMS
from data_prep.construction.sheets import item_name, read_table, write_sheet
from data_prep.construction.steps.base import Row
from tests.data_prep.construction.made_up import question, response_rows

NASTY = "</script><img src=x onerror=document.title='owned'>"


def type_keys(browser: Chrome, *keys: str) -> None:
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def saved(folder: Path, name: str) -> Path:
    path, deadline = folder / name, time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, "nothing was saved"
        time.sleep(0.05)
    return path


def open_page(browser: Chrome, page: Path, downloads: Path) -> None:
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
    )
    browser.get(page.as_uri())


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
    browser.refresh()  # what was filled in is still there
    assert "Item 1 of 3, 2 finished" in browser.find_element("id", "progress").text
    type_keys(browser, "n")
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
