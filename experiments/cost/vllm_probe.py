"""Run inside an environment with vLLM: time one pass over prompts and report each first token.

python experiments/cost/vllm_probe.py job.json out.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main(job_path: str, out_path: str) -> None:
    """Time the prompts of a job; write ``seconds`` and the first ``tokens``."""
    from vllm import LLM, SamplingParams

    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    engine = LLM(
        model=job["model"],
        dtype=job["dtype"],
        max_model_len=4096,
        enable_prefix_caching=True,
        gpu_memory_utilization=0.4,  # of main memory, on a CPU; the caller holds some too
        disable_log_stats=True,
    )
    sampling = SamplingParams(temperature=0, max_tokens=1, allowed_token_ids=job["tokens"])
    engine.generate([{"prompt_token_ids": ids} for ids in job["warm"]], sampling, use_tqdm=False)
    started = time.perf_counter()
    outputs = engine.generate(
        [{"prompt_token_ids": ids} for ids in job["prompts"]], sampling, use_tqdm=False
    )
    seconds = time.perf_counter() - started
    tokens = [output.outputs[0].token_ids[0] for output in outputs]
    Path(out_path).write_text(json.dumps({"seconds": seconds, "tokens": tokens}), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
