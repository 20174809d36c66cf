"""Put a trained adapter into the package: python -m training.delta.install ADAPTER.gguf WEIGHTS (such as 1.5b)."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from bicameral.models import find_weights

MODELS = Path(__file__).parents[2] / "src" / "bicameral" / "models"


def install(adapter: Path, weights: str, job: str = "delta") -> Path:
    """Copy the adapter beside the code and pin it in `known.toml`."""
    known = find_weights(weights)
    target = MODELS / "adapters" / f"{known.id}-{job}.gguf"
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(adapter, target)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    line = f'adapters = {{ {job} = {{ file = "{target.name}", sha256 = "{digest}" }} }}\n'
    toml = MODELS / "known.toml"
    before, start, rest = toml.read_text("utf-8").partition(f'id = "{known.id}"\n')
    block, end, after = rest.partition("[[weights]]")
    block = re.sub(r"^adapters = .*\n", "", block, flags=re.MULTILINE)
    block = block.replace("member = ", f"{line}member = ", 1)
    toml.write_text(before + start + block + end + after, encoding="utf-8")
    return target


if __name__ == "__main__":
    print(install(Path(sys.argv[1]), sys.argv[2]))
