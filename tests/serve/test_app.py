"""Routes that tell what is served, and routes that are not there."""

from fastapi.testclient import TestClient


def test_unknown_routes_have_the_same_shape(client: TestClient) -> None:
    assert client.get("/v2").json()["error"]["type"] == "not_found"
    answer = client.get("/judge")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert answer.json()["error"]["type"] == "method_not_allowed"
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_judges_and_health(client: TestClient) -> None:
    assert client.get("/judges").json() == {
        "judges": [
            {
                "name": name,
                "tasks": {"hieval-qs": []},
                "measured": [f"judge {name}: not measured on this task (hieval-qs)"],
            }
            for name in ("first", "second")
        ]
    }
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready"}
