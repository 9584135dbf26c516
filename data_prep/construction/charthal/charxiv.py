"""CharXiv's validation charts, which ChartHal samples from, as its repository holds them.

A clone of the repository has three files about every chart, keyed by its number; its pictures come
apart, and go to ``images/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_prep.construction.charthal.charts import IMAGE_FOLDER, Chart
from judging.errors import CustosError
from judging.files.records import decode_json
from judging.types import parse_record

METADATA, SUBPLOTS, TYPES = (
    f"data/{name}_val.json" for name in ("image_metadata", "descriptive", "chart_types")
)
FILES = (METADATA, SUBPLOTS, TYPES)
"""Files of a clone: disciplines, numbers of subplots, and types of the charts."""


def load_charxiv(folder: Path) -> list[Chart]:
    """Read the validation charts of a clone of CharXiv's repository.

    The discipline of a chart is the category of its paper. A chart that mixes types counts as one
    of the first type that CharXiv names.

    Raises:
        CustosError: If a file or a picture is missing, or a chart lacks something.
    """
    metadata, subplots, types = (_read(folder / name) for name in FILES)
    charts = []
    for number, about in metadata.items():
        location = f"{folder}: chart {number}"
        picture = folder / IMAGE_FOLDER / f"{number}.jpg"
        if not picture.is_file():
            raise CustosError(
                f"{location}: no {picture}; unpack CharXiv's images.zip in {folder / IMAGE_FOLDER}"
            )
        fields = {
            "id": number,
            "images": (str(picture.resolve()),),
            "num_subplots": subplots.get(number, {}).get("num_subplots"),
            "discipline": about.get("category"),
            "chart_type": next(iter(types.get(number, {}).get("chart_types", ())), None),
        }
        charts.append(parse_record(Chart, fields, location))
    return charts


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise CustosError(f"{path}: there is no such file; is this a clone of CharXiv?")
    try:
        records = decode_json(path.read_bytes())
    except CustosError as error:
        raise CustosError(f"{path}: {error}") from None
    if not isinstance(records, dict) or not all(isinstance(row, dict) for row in records.values()):
        raise CustosError(f"{path}: expected an object of charts by number")
    return records
