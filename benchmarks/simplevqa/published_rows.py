"""SimpleVQA's published figures, and the order of tasks and domains in them.

Table 1 of the paper compares benchmarks, and Tables 7 and 8 list models.
"""

from __future__ import annotations

from benchmarks.framework.base import PaperRow, PublishedTable
from data_prep.construction.steps.simplevqa import DOMAINS as DOMAIN_NAMES
from data_prep.construction.steps.simplevqa import PUBLISHED as STATISTICS
from data_prep.construction.steps.simplevqa import TASKS as TASK_NAMES

TASKS, DOMAINS = tuple(TASK_NAMES), tuple(DOMAIN_NAMES)

BY_TASK = "Table 3 (%): overall, then F by task"
BY_DOMAIN = "Table 4 (%): by language, then F by domain"
CFQ = "Table 5 (%): accuracy on the 569 CFQ items"
BLIND = "Table 6 (%): without the picture"

_CONCLUSIONS = (
    "CO: correct, NA: not attempted, IN: incorrect, CGA: correct given attempted, F: harmonic mean "
    "of CO and CGA."
)
_TASK_CODES, _DOMAIN_CODES = (
    "; ".join(f"{code}: {name}" for code, name in names.items())
    for names in (TASK_NAMES, DOMAIN_NAMES)
)


def _as_printed(text: str) -> dict[str, PaperRow]:
    """Read rows as the paper prints them: one a line, the model's name before its figures."""
    rows = (line.split() for line in text.strip().splitlines())
    return {name: tuple(map(float, cells)) for name, *cells in rows}


_TABLE_3 = """
GPT-4o                 47.2 7.8 45.0 51.2 49.1 58.7 53.4 48.1 36.4 44.3 57.5 61.8 35.1 61.0
GPT-4o-mini            35.5 10.0 54.5 39.4 37.3 30.0 44.4 38.5 29.6 36.2 42.1 45.9 25.8 40.6
Doubao-vision-pro-128k 39.7 20.8 39.5 50.1 44.3 48.3 53.5 53.4 39.6 35.0 38.5 46.9 35.9 62.9
Doubao-vision-pro-32k  25.4 23.6 51.4 32.7 28.3 24.2 37.9 18.0 31.6 21.3 39.2 32.9 18.6 36.6
Gemini-2.0-flash       52.8 6.0 41.2 56.1 54.4 63.7 60.9 54.3 55.0 44.3 61.5 65.7 33.9 64.4
Claude-3.5-Sonnet      48.5 9.8 41.8 53.7 50.9 57.1 53.9 52.1 29.7 47.2 58.4 62.7 46.7 60.1
Qwen-Max               25.4 15.3 59.3 30.0 27.5 15.1 33.7 13.5 30.1 27.7 36.0 34.4 12.1 36.4
ERNIE-VL               46.5 9.5 44.0 51.4 48.8 49.0 55.9 48.3 40.7 40.7 54.4 59.7 33.6 70.8
InternVL2.5-78B-MPO    45.4 5.9 48.6 48.3 46.8 57.4 54.6 50.3 26.4 34.4 57.0 65.8 32.8 72.3
InternVL2.5-78B        41.5 7.7 50.8 45.0 43.2 49.5 49.4 45.0 28.4 31.0 49.6 63.7 32.0 65.2
InternVL2-Llama3-76B   35.7 8.4 55.9 38.9 37.2 34.7 43.5 35.6 26.2 28.4 44.3 53.5 29.0 54.1
InternVL2.5-38B-MPO    42.9 5.4 51.8 45.3 44.0 51.7 52.5 45.7 22.1 34.0 52.0 67.8 32.8 60.4
InternVL2.5-26B-MPO    39.9 7.6 52.5 43.2 41.5 43.4 44.5 47.7 27.1 31.7 45.9 58.6 29.0 68.0
InternVL2.5-8B-MPO     33.6 7.5 58.9 36.3 34.9 45.1 37.4 30.9 19.1 26.0 44.3 52.2 26.4 56.2
Qwen2.5-VL-72B         49.4 5.4 45.2 52.2 50.8 57.7 50.8 51.0 38.6 51.6 57.8 65.8 29.8 62.8
Qwen2-VL-72B-Instruct  44.7 10.3 45.0 49.8 47.1 48.8 51.9 46.3 37.9 38.5 55.3 63.0 35.9 59.7
Qwen2.5-VL-7B-Instruct 43.2 5.1 51.7 45.6 44.3 38.6 52.7 37.6 32.7 41.0 52.6 53.6 39.2 56.7
Janus-pro-7B           31.3 10.6 58.1 35.0 33.0 27.0 43.4 26.5 23.7 28.2 24.0 50.4 36.2 42.3
"""
_TABLE_4 = """
GPT-4o                  48.7 51.6 50.1 45.7 50.7 48.1 47.0 37.5 58.2 62.0 50.5 61.7 30.3 29.6 58.8
GPT-4o-mini             33.0 36.0 34.4 38.2 43.1 40.5 36.0 25.4 44.4 41.5 41.1 40.6 22.9 26.6 52.3
Doubao-vision-pro-128k  51.1 56.4 53.6 28.5 41.8 33.9 51.8 23.7 50.1 52.2 49.0 44.3 32.6 44.9 48.7
Doubao-vision-pro-32k   29.0 37.8 32.8 15.6 26.2 19.6 34.9 13.4 33.0 38.2 29.3 23.4 15.2 29.1 37.4
Gemini-2.0-flash        54.8 57.9 56.3 50.7 54.3 52.5 54.1 35.4 59.9 67.5 70.9 64.6 29.2 36.3 64.6
Claude-3.5-Sonnet       48.0 50.6 49.3 49.2 57.0 52.8 49.1 42.7 52.7 56.5 48.1 61.1 38.7 34.4 66.5
Qwen-Max                25.2 29.4 27.1 25.6 30.6 27.9 28.1 21.0 35.4 34.8 31.6 20.0 14.2 11.9 44.1
ERNIE-VL                54.0 55.3 54.6 40.7 44.9 42.7 55.9 32.9 60.0 54.6 42.8 50.7 27.8 45.4 59.4
InternVL2.5-78B-MPO     51.7 54.7 53.1 39.2 41.8 40.5 54.2 22.5 60.2 53.6 35.5 56.7 27.5 37.9 63.6
InternVL2.5-78B         46.7 49.2 47.9 36.3 40.6 38.3 48.3 18.6 55.2 56.0 33.0 53.9 25.6 33.7 57.5
InternVL2-Llama3-76B    34.2 37.4 35.7 37.1 40.4 38.7 38.3 19.0 44.0 44.4 35.4 45.6 20.4 21.4 57.1
InternVL2.5-38B-MPO     48.0 49.5 48.8 37.7 40.9 39.2 52.3 21.0 54.2 59.5 29.3 51.5 27.9 31.6 61.6
InternVL2.5-26B-MPO     45.5 47.3 46.3 34.4 38.8 36.4 46.9 20.6 54.5 47.6 32.4 51.6 20.5 34.4 54.3
InternVL2.5-8B-MPO      35.8 38.5 37.1 31.4 34.0 32.7 36.0 14.0 43.7 43.2 26.4 46.4 20.3 22.5 53.5
Qwen2.5-VL-72B-Instruct 48.0 50.4 49.2 50.7 54.0 52.3 49.4 45.2 64.3 62.4 53.6 58.3 20.9 30.3 61.8
Qwen2-VL-72B-Instruct   46.1 48.6 47.3 43.3 51.2 46.9 45.2 30.4 54.0 57.2 51.6 53.5 29.4 29.7 65.2
Qwen2.5-VL-7B-Instruct  41.9 44.0 42.9 44.5 47.1 45.8 42.9 42.8 54.9 49.8 40.4 46.4 25.9 30.3 56.9
Janus-pro-7B            29.5 32.1 30.7 33.2 38.1 35.5 30.5 21.5 40.2 40.8 26.2 37.1 26.8 15.3 53.2
"""

PUBLISHED = (
    PublishedTable(
        BY_TASK,
        ("CO", "NA", "IN", "CGA", "F", *TASKS),
        _as_printed(_TABLE_3),
        ranked_by="F",
        corrected="CO",
        radar=TASKS,
        note=f"{_CONCLUSIONS} {_TASK_CODES}.",
    ),
    PublishedTable(
        BY_DOMAIN,
        (
            *("Chinese CO", "Chinese CGA", "Chinese F"),
            *("English CO", "English CGA", "English F"),
            *DOMAINS,
        ),
        _as_printed(_TABLE_4),
        ranked_by="Chinese F",
        radar=DOMAINS,
        note=f"{_CONCLUSIONS} {_DOMAIN_CODES}.",
    ),
    PublishedTable(
        CFQ,
        ("Origin", "Atomic", "Atomic-Given"),
        {
            "o1-preview": (None, None, 62.74),
            "o1-mini": (None, None, 51.49),
            "DeepSeek-R1": (None, None, 55.01),
            "Qwen-Max": (None, None, 54.83),
            "GPT-4o": (56.24, 56.94, 61.69),
            "Qwen2.5-VL-72B-Instruct": (51.67, 59.58, 64.15),
            "InternVL2.5-78B-MPO": (55.36, 55.71, 69.95),
        },
        ranked_by="Atomic-Given",
        note="Origin: the question as it is. Atomic: the question who or what is in the picture. "
        "Atomic-Given: the question with the answer to that.",
    ),
    PublishedTable(
        BLIND,
        ("CO", "IN", "NA", "CGA"),
        {
            "o1-preview": (3.65, 22.12, 74.22, 14.16),
            "o1-mini": (4.1, 19.51, 76.4, 17.36),
            "DeepSeek-R1": (10.08, 53.6, 36.32, 15.82),
            "Qwen-Max": (7.6, 70.77, 21.63, 9.69),
            "GPT-4o": (5.23, 31.6, 63.16, 14.2),
            "GPT-4o-mini": (6.47, 47.65, 45.88, 11.95),
            "Claude-3.5-Sonnet2": (2.02, 7.21, 90.77, 21.88),
            "Gemini-2.0-flash": (7.06, 61.33, 31.6, 10.32),
        },
        ranked_by="CO",
        corrected="CO",
        note=_CONCLUSIONS,
    ),
    PublishedTable(
        "Table 2: items",
        ("number",),
        {name: (number,) for name, number in STATISTICS.items() if number >= 1},
    ),
    PublishedTable(
        "Table 2 (%): shares of tasks and domains",
        (*TASKS, *DOMAINS),
        {
            "share of the items": tuple(
                round(100 * STATISTICS[code], 2) for code in (*TASKS, *DOMAINS)
            )
        },
        note=f"Tasks: {_TASK_CODES}. Domains: {_DOMAIN_CODES}.",
    ),
)
