"""Pictures come as data URLs, and are measured before they are decoded."""

import pytest
from fastapi.testclient import TestClient

from tests.serve.made_up import picture, refused, row


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_pictures_come_as_data_urls(client: TestClient, kind: str) -> None:
    assert client.post("/judge", json=row(images=[picture(kind=kind)])).status_code == 200


@pytest.mark.parametrize(
    "image",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
        "https://example.org/cat.png",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/png,raw",
        " " + "data:image/png;base64,AAAA",
    ],
)
def test_nothing_but_data_urls(client: TestClient, image: str) -> None:
    field, message = refused(client, {"requests": [row(), row(images=[image])]})
    assert field == "requests.1.images"
    assert "only data URLs" in message


@pytest.mark.parametrize(
    "image", ["data:image/png;base64,AAAA", "data:image/png;base64,!", picture(kind="gif")]
)
def test_broken_pictures_say_nothing_of_their_content(client: TestClient, image: str) -> None:
    image = image.replace("image/gif", "image/png")
    assert refused(client, row(images=[image])) == (
        "images",
        "not a readable JPEG, PNG or WebP picture",
    )


@pytest.mark.parametrize("size", [(4001, 4000), (20_000, 10_000)])
def test_bombs_are_refused_by_their_header(client: TestClient, size: tuple[int, int]) -> None:
    assert (
        "more than 16,000,000 pixels" in refused(client, row(images=[picture(size, mode="1")]))[1]
    )
