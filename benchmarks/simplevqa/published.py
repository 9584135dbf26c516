"""SimpleVQA's published figures, and the order of tasks and domains in them."""

from __future__ import annotations

from benchmarks.framework.base import PublishedTable

TASKS = ("LS", "OIR", "TE", "PE", "LB", "TP", "QPR", "AC", "OAR")
DOMAINS = ("LES", "EHC", "CS", "ETA", "FTM", "NS", "AR", "CHC", "LI")

PUBLISHED = (
    PublishedTable(
        "Table 3 (%): overall, then F by task",
        ("CO", "NA", "IN", "CGA", "F", *TASKS),
        {
            "GPT-4o": (
                *(47.2, 7.8, 45.0, 51.2, 49.1),
                *(58.7, 53.4, 48.1, 36.4, 44.3, 57.5, 61.8, 35.1, 61.0),
            ),
            "Gemini-2.0-flash": (
                *(52.8, 6.0, 41.2, 56.1, 54.4),
                *(63.7, 60.9, 54.3, 55.0, 44.3, 61.5, 65.7, 33.9, 64.4),
            ),
            "Claude-3.5-Sonnet": (
                *(48.5, 9.8, 41.8, 53.7, 50.9),
                *(57.1, 53.9, 52.1, 29.7, 47.2, 58.4, 62.7, 46.7, 60.1),
            ),
            "InternVL2.5-78B-MPO": (
                *(45.4, 5.9, 48.6, 48.3, 46.8),
                *(57.4, 54.6, 50.3, 26.4, 34.4, 57.0, 65.8, 32.8, 72.3),
            ),
            "Qwen2.5-VL-72B": (
                *(49.4, 5.4, 45.2, 52.2, 50.8),
                *(57.7, 50.8, 51.0, 38.6, 51.6, 57.8, 65.8, 29.8, 62.8),
            ),
            "Qwen2.5-VL-7B": (
                *(43.2, 5.1, 51.7, 45.6, 44.3),
                *(38.6, 52.7, 37.6, 32.7, 41.0, 52.6, 53.6, 39.2, 56.7),
            ),
        },
    ),
    PublishedTable(
        "Table 4 (%): F by language and domain",
        ("chinese", "english", *DOMAINS),
        {
            "GPT-4o": (50.1, 48.1, 47.0, 37.5, 58.2, 62.0, 50.5, 61.7, 30.3, 29.6, 58.8),
            "Gemini-2.0-flash": (
                *(56.3, 52.5, 54.1, 35.4, 59.9, 67.5, 70.9, 64.6, 29.2, 36.3, 64.6),
            ),
            "Claude-3.5-Sonnet": (
                *(49.3, 52.8, 49.1, 42.7, 52.7, 56.5, 48.1, 61.1, 38.7, 34.4, 66.5),
            ),
            "InternVL2.5-78B-MPO": (
                *(53.1, 40.5, 54.2, 22.5, 60.2, 53.6, 35.5, 56.7, 27.5, 37.9, 63.6),
            ),
            "Qwen2.5-VL-72B": (
                *(49.2, 52.3, 49.4, 45.2, 64.3, 62.4, 53.6, 58.3, 20.9, 30.3, 61.8),
            ),
            "Qwen2.5-VL-7B": (*(42.9, 45.8, 42.9, 42.8, 54.9, 49.8, 40.4, 46.4, 25.9, 30.3, 56.9),),
        },
    ),
    PublishedTable(
        "Table 5 (%): accuracy on the 569 CFQ items",
        ("Origin", "Atomic", "Atomic-Given"),
        {
            "DeepSeek-R1": (None, None, 55.01),
            "GPT-4o": (56.24, 56.94, 61.69),
            "Qwen2.5-VL-72B": (51.67, 59.58, 64.15),
            "InternVL2.5-78B-MPO": (55.36, 55.71, 69.95),
        },
    ),
    PublishedTable(
        "Table 6 (%): without the picture",
        ("CO", "IN", "NA", "CGA"),
        {
            "o1-preview": (3.65, 22.12, 74.22, 14.16),
            "DeepSeek-R1": (10.08, 53.60, 36.32, 15.82),
            "GPT-4o": (5.23, 31.60, 63.16, 14.20),
            "Gemini-2.0-flash": (7.06, 61.33, 31.60, 10.32),
        },
    ),
)
