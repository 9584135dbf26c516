"""Judges: what they are asked, how they answer, and what they are made of."""

import os

# Threads that wait for others by spinning lose most speed when another process takes a core; those
# that sleep at once are slower on an idle machine (docs/experiments.md has the figures). OpenMP
# reads this once, when torch is loaded.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from judging.errors import CustosError
from judging.types import JudgeRequest, LabelledExample, Verdict

__all__ = ["CustosError", "JudgeRequest", "LabelledExample", "Verdict"]
