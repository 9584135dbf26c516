"""The counters of ``GET /metrics``."""

from fastapi.testclient import TestClient

from tests.serve.made_up import row


def test_metrics_tell_what_happened(client: TestClient) -> None:
    client.post("/judge", json={"requests": [row(), row(), row("break")]})
    text = client.get("/metrics").text
    assert 'judge_verdict_total{judge="first",label="Correct",status="scored"} 2.0' in text
    assert 'judge_verdict_total{judge="first",label="",status="judge_error"} 1.0' in text
    assert 'judge_requests_total{outcome="answered"} 3.0' in text
    assert 'judge_http_requests_total{route="/judge",status="200"} 1.0' in text
    assert 'judge_num_requests_waiting{judge="second"} 0.0' in text
