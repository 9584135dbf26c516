"""TruthfulVQA's published figures."""

from __future__ import annotations

from benchmarks.framework.base import PublishedTable
from clients.messages import Decoding

PUBLISHED = (
    PublishedTable(
        "Figure 3b, means over more than 50 models (%)",
        ("level 1", "level 2", "level 3"),
        {"mean": (81.85, 55.37, 44.96)},
    ),
    PublishedTable(
        "Section 4.2, normalised LAL over the levels",
        ("LAL",),
        {
            "QVQ-72B": (0.89,),
            "Mulberry-Qwen2-VL-7B": (0.71,),
            "Kimi-VL-A3B-Thinking": (0.53,),
        },
    ),
    PublishedTable(
        "Appendix E, open-ended answers",
        ("Elo",),
        {
            "Claude-3.5-Sonnet": (1618.5,),
            "Qwen2.5-VL-72B": (1613.3,),
            "GPT-4o": (1581.2,),
        },
    ),
)

DECODINGS = {
    "chat": Decoding(temperature=0.0, top_p=1.0, max_tokens=4096),
    "api": Decoding(temperature=0.0, top_p=1.0, max_tokens=4096),
    "skywork-r1v": Decoding(temperature=0.0, top_p=0.95, max_tokens=8192),
    "kimi-vl-thinking": Decoding(temperature=0.6, top_p=1.0, max_tokens=8192),
    "kimi-vl-instruct": Decoding(temperature=0.2, top_p=1.0, max_tokens=4096),
    "llama-cot": Decoding(temperature=0.1, top_p=1.0, max_tokens=8192),
    "mulberry": Decoding(temperature=0.6, top_p=0.9, max_tokens=8192),
}
"""Table 5: sampling by group of models. ``chat`` are the open models without long reasoning, and
``llama-cot`` also LlamaV-o1 and VisualThinker-R1-Zero."""
