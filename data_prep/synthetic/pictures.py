"""Drawn pictures of a data set: one folder of PNG files, each named after its content."""

from __future__ import annotations

from pathlib import Path

from data_prep.tables.cells import content_name, save_image

IMAGE_FOLDER = "images"


def picture_path(png: bytes) -> str:
    """Return a picture's path relative to the folder of its data set."""
    return f"{IMAGE_FOLDER}/{content_name(png, 'png')}"


def save_picture(png: bytes, out: Path) -> None:
    """Save a picture under its ``picture_path`` in the folder of a data set."""
    save_image(png, out / IMAGE_FOLDER)
