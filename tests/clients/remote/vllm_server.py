"""A real vLLM server (``make vllm``) for a checkpoint in a folder."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

PYTHON = Path(__file__).parents[3] / ".venv-vllm" / "bin" / "python"
START_S = 240


@contextmanager
def vllm_server(model: Path) -> Iterator[str]:
    """Serve a checkpoint as ``qs`` in bfloat16; yield the address that clients are given."""
    if not PYTHON.is_file():
        pytest.skip("no vLLM environment: make vllm")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        # The CPU build's own command does not find its version.
        *(str(PYTHON), "-P", "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model), "--served-model-name", "qs"),
        *("--host", "127.0.0.1", "--port", str(port), "--dtype", "bfloat16", "--enforce-eager"),
        *("--max-model-len", "1024", "--gpu-memory-utilization", "0.3"),
    ]
    path = model.parent / "vllm.log"
    with path.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as it:
        try:
            until = time.monotonic() + START_S
            while not answers(f"http://127.0.0.1:{port}/health"):
                if it.poll() is not None or time.monotonic() > until:
                    pytest.fail(path.read_text()[-3000:])
                time.sleep(1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            it.terminate()


def answers(address: str) -> bool:
    """Return whether something answers well there."""
    try:
        return httpx.get(address, timeout=2).is_success
    except httpx.HTTPError:
        return False
