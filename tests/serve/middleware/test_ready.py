"""The service before its judges are loaded."""

from fastapi.testclient import TestClient

from serve.app import create_app
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row


def test_before_the_judges_are_loaded_everything_but_health_is_503(judge: FakeJudge) -> None:
    service = Service()
    with TestClient(create_app(service)) as client:
        assert client.get("/health/live").status_code == 200
        assert client.get("/health").json() == {"status": "starting"}
        assert client.get("/health/ready").json() == {"status": "starting"}
        answer = client.post("/judge", json=row())
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        service.open({"a": judge})
        assert client.get("/health").status_code == 200
        assert client.get("/health/ready").status_code == 200
        assert client.post("/judge", json=row()).status_code == 200
