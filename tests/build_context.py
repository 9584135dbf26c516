"""A copy of what an image or a wheel is built from."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info")


def build_context(folder: Path) -> Path:
    """Copy what ``.dockerignore`` lets into the build, and return the folder of the copy."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    folder.mkdir(parents=True)
    for name in re.findall(r"^!(\S+)$", ignored, re.MULTILINE):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder
