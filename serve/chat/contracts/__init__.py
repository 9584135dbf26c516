"""The harnesses that can ask for a verdict. Adding one is adding a file here with a ``CONTRACT``.

Only delimiters and reply formats are kept, which any compatible program needs to know; no harness's
own sentences.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from serve.chat.contract import Contract

CONTRACTS: dict[str, Contract] = {
    contract.name: contract
    for contract in (
        import_module(f"{__name__}.{module.name}").CONTRACT
        for module in pkgutil.iter_modules(__path__)
    )
}
"""By name, in alphabetical order of their files."""
