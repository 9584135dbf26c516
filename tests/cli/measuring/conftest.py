import pytest


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures for reports, which takes long."""
    monkeypatch.setattr("evaluation.report.plots.draw_report", lambda report, out_dir: [])
    monkeypatch.setattr("evaluation.report.page.drawn_url", lambda draw: "data:image/png;base64,")
