"""Put a trained adapter into the package: python -m training.delta.install ADAPTER.gguf WEIGHTS [JOB].

WEIGHTS is a short name such as 1.5b, JOB is delta (the default), echo or reader.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from bicameral.models import find_weights

MODELS = Path(__file__).parents[2] / "src" / "bicameral" / "models"


def install(adapter: Path, weights: str, job: str = "delta") -> Path:
    """Copy the adapter beside the code and pin it in `known.toml`; adapters for other jobs stay."""
    known = find_weights(weights)
    target = MODELS / "adapters" / f"{known.id}-{job}.gguf"
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(adapter, target)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    pins = {name: (pin.file, pin.sha256) for name, pin in known.adapters.items()} | {job: (target.name, digest)}
    listed = ", ".join(
        f'{each} = {{ file = "{file}", sha256 = "{sha}" }}' for each, (file, sha) in sorted(pins.items())
    )
    line = f"adapters = {{ {listed} }}\n"
    toml = MODELS / "known.toml"
    before, start, rest = toml.read_text("utf-8").partition(f'id = "{known.id}"\n')
    block, end, after = rest.partition("[[weights]]")
    block = re.sub(r"^adapters = .*\n", "", block, flags=re.MULTILINE)
    block = block.replace("member = ", f"{line}member = ", 1)
    toml.write_text(before + start + block + end + after, encoding="utf-8")
    return target


if __name__ == "__main__":
    print(install(Path(sys.argv[1]), *sys.argv[2:4]))
