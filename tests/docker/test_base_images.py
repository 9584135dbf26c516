"""Every image that ours are built on can be named by its digest."""

import re

import yaml

from tests.build_context import ROOT

NAMED_BY_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


def dockerfile_images(text: str) -> tuple[list[str], set[str], set[str]]:
    """The images that stages begin with or copy from, the stages, and the arguments for images."""
    images = re.findall(r"^FROM +(?:--\S+ +)*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    images += re.findall(r"--(?:mount=\S*?from|from)=([^\s,]+)", text)
    stages = set(re.findall(r"^FROM .+ AS +(\S+)", text, re.MULTILINE | re.IGNORECASE))
    before_stages = text.partition("\nFROM ")[0]  # only these hold for FROM
    return images, stages, set(re.findall(r"^ARG (\w+)=\S+", before_stages, re.MULTILINE))


def unpinnable(text: str) -> list[str]:
    """Images of a Dockerfile that no build argument names."""
    images, stages, arguments = dockerfile_images(text)
    return [
        image
        for image in images
        if image not in stages
        and not ((match := NAMED_BY_VARIABLE.fullmatch(image)) and match[1] in arguments)
    ]


def test_a_build_argument_names_every_image_of_the_dockerfile() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert dockerfile_images(text)[0]
    assert unpinnable(text) == []


def test_an_image_that_is_named_outright_is_found() -> None:
    text = "ARG BASE=a:1\nFROM $BASE AS build\nARG LATE=b:1\nFROM --platform=x ${LATE}\n"
    text += "COPY --from=build /a /a\nCOPY --from=c:1 /c /c\nFROM d:1@sha256:00\n"
    assert unpinnable(text) == ["${LATE}", "d:1@sha256:00", "c:1"]


def test_a_variable_names_every_image_of_the_composition() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    for service in services.values():
        built_on = service.get("build", {}).get("args", {}).get("BASE")
        assert re.fullmatch(r"\$\{\w+:-\S+\}", service.get("image") or built_on)
