"""Limits on the fields and pictures of a request."""

from fastapi.testclient import TestClient

from serve.limits import Limits
from tests.serve.made_up import picture, refused, row

LIMITS = Limits()


def test_seeds_are_those_a_generator_takes(client: TestClient) -> None:
    assert client.post("/judge", json=row(seed=2**63 - 1)).status_code == 200
    for seed in (-1, 2**63, 10**30):
        assert refused(client, row(seed=seed))[0] == "seed"


def test_field_lengths_are_bounded_over_all_parts(client: TestClient) -> None:
    half = "x" * (LIMITS.field_chars // 2)
    assert client.post("/judge", json=row(references=[half, half])).status_code == 200
    assert refused(client, row(references=[half, half, "y"]))[0] == "references"


def test_pictures_of_a_request_and_of_a_call_are_bounded(client: TestClient) -> None:
    assert (
        refused(client, row(images=[picture()] * (LIMITS.images + 1)))[1] == "more than 8 pictures"
    )
    large = row(images=[picture((4000, 4000), mode="1")])
    field, message = refused(client, {"requests": [large] * 5})
    assert (field, message) == ("requests.4.images", "more than 64,000,000 pixels in one call")
