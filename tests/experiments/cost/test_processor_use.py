from __future__ import annotations

import subprocess
import sys
import time

from experiments.cost.processor_use import ProcessorUse


def test_a_busy_process_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        before = ProcessorUse.now()
        time.sleep(0.5)
        assert ProcessorUse.now().other_cores(before) > 0.05
        process.kill()
    command = "import time; t = time.process_time; s = t()\nwhile t() - s < 0.3: pass"
    before = ProcessorUse.now()
    subprocess.run([sys.executable, "-c", command], check=True)
    assert ProcessorUse.now().process - before.process < 0.25
