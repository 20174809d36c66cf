"""What does the linter say about published agents of other frameworks, and is it right?

    python -m benchmarks.frameworks
    python -m benchmarks.frameworks --folder packages      (keeps what was fetched)

Packages with agents of pydantic-ai, LangGraph and the OpenAI Agents SDK are fetched by name and hash, unpacked and
read; nothing of them is installed or imported. Each error of the linter was judged by hand: it is right if what it says
is true of the code at that place. The last line is one JSON object: `precision` is the share of right ones with its
95 % interval of Wilson, `unjudged` are errors without a judgement. The severities were adjusted on the packages of
`SEEN`; those of `HELD_BACK` were looked at afterwards.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bicameral.catalog.frameworks import lint_recovered, read_code

from .planning.figures import share, wilson


@dataclass(frozen=True, slots=True)
class Package:
    """A package by its version and hash, and the folder in it that is read."""

    name: str
    sha256: str
    folder: str = ""

    @property
    def is_archive(self) -> bool:
        """Whether its examples are only in the source archive."""
        return bool(self.folder)


SEEN = (
    Package(
        "openai-agents==0.24.0",
        "4b4b285f4fed81fdf1b4ac426a9101658d9cd29b4fb1aaeee18f639b77e704e3",
        "openai_agents-0.24.0/examples",
    ),
    Package("pydantic-ai-examples==2.62.0", "8b0684abdef1b5761f9637ee8bfa8baf0b71e0390cee7acfafeb2f28698c39d2"),
    Package("ai-data-science-team==0.0.0.9017", "fa4b6fdcec3634248fcd26488fac6b791cbdd0f888c3b2e607451b12e5a192d8"),
    Package("arklex==0.1.21", "a3825fd7377820eea255e1fd563ea586450779094d5b467a35394e99cc06bbd9"),
    Package("deepagents==0.7.32", "366bd66c786a66c8d639e40f99614d9e5d37236adf4c5b158f0b2cb27956e28b"),
    Package("gpt-researcher==0.15.1", "d75cee841f3d0f524e7da23ba091bd013492711d859f5dc2023207ccaec7a482"),
    Package("haiku.rag==0.6.0", "e515b6d0d76676cdc0609709be755b04a4cca708f082f8a4257aa253937cc295"),
    Package("langgraph-agent-toolkit==0.10.1", "8386df3dfe8ef934eefbc3994178b0abb751ca0f40d58464fedac4b712d00c0d"),
    Package("langgraph-bigtool==0.0.3", "7535c924708ca7ecfccaf57b582db331cf8f21a3cd30b60abc912a7aa0db7594"),
    Package("langgraph-codeact==0.1.3", "0677d65ca9ffa8347aa3df85205d9eafa9c898e2220ebe36eedf178c2f614862"),
    Package("langgraph-cua==0.0.1", "4c7d69fe695329e87a5c5f0593ec5f987a3647fea0a9e438444bf7b257ef7963"),
    Package("langgraph-reflection==0.0.1", "bb273f22978ac037af4213a02cf79658208e32a6a25d87d754223e81ded3ef06"),
    Package("langgraph-supervisor==0.0.31", "6bbe5311f536d38779766cc6f074005e3e892d37edbfd875731923221daa1889"),
    Package("langgraph-swarm==0.1.0", "7020b9a1ba6959b8ddd0168e49b236e8f9967ea40a8a2ccd14c28ec57fe6c227"),
    Package("langmem==0.0.30", "142f040014493eebd67e1055c0642f9ab38868b5b1fde5c8f2d39add57f4ba5b"),
    Package("local-deep-research==1.5.6", "b0cb4d6fea06571eb52f250e09208934d8b37b2f3fdb299b02d06502be605a99"),
    Package("marvin==3.2.7", "f9993cdecfab46adef2d0384a1b3d80b18e5b659349959734fed79044675afb8"),
    Package("mcp-use==1.7.1", "e92ee5032c02e8f4a2cde7b2ec1877c72064ff209543ff011c1170a5125d8922"),
    Package("open-deep-research==0.0.16", "58c62a7849763a5f0241dcd31ca9703a6a985a9b3b9529ec2fa1e3c06b065cfe"),
    Package("pydantic-deep==0.3.50", "4e91124385a7f0259337ae3ab219d26d22eb01fa8343149ece1c0cde5464725f"),
)
HELD_BACK = (
    Package("airflow-ai-sdk==0.1.8", "4b340852dff19ea458ff260967607565ad408be5ee49f899c6bc5f27288409d0"),
    Package("biomni==0.0.8", "723e271097d0ef0d4a0f0b4746a28884afd617dcdd9e4496d06c2b53815e9770"),
    Package("code-puppy==0.0.946", "5da2c5c62a042129b555589e9ccbc8aec715ffcb74d5d95d36f29714b8ef09a6"),
    Package("docetl==0.3.0", "e5c42082cca0f14b6381f7cba3b7695cebf68b4c0a54af3c9a0b48158e8bdf24"),
    Package("nvidia-nat-langchain==1.9.0", "177b3eb4068f0641a885522a2a9d0fd1ea58b2ee07d0ca7cd447c2e639c4566a"),
    Package("pydantic-ai-harness==0.62.0", "65529a6702b67f10dc55fafb445264bbe5731a05d3078749ed241ab329e1328a"),
    Package("ragbits-agents==1.6.2", "dad6f68ab74c043d46a97c2390d970e4a9569a152597ca4013374ed9f052c39a"),
    Package("uipath-langchain==0.18.51", "5d5819cd3b41740e7ca95db150e81ea6a0372647682bbe28ceeb6c2316862d65"),
)

JUDGED = {
    # The computer of this example is a browser on the web, and whatever its model decides is clicked and typed.
    ("openai-agents", "L6", "agents.Browser user.actions.ComputerTool"): True,
    ("openai-agents", "LAW2", "agents.Browser user.actions.ComputerTool"): True,
    # The tool starts a server with `subprocess.Popen`, with a host and a port that the model chooses.
    ("ai-data-science-team", "LAW2", "agents.react_agent 3.actions.mlflow_launch_ui"): True,
}
"""Whether an error is right, by package, rule and path."""


def fetch(package: Package, folder: Path) -> Path:
    """The unpacked package; `pip` refuses one with another hash."""
    target = folder / package.name.replace("==", "-")
    if not target.exists():
        pinned = folder / "pinned.txt"
        pinned.write_text(f"{package.name} --hash=sha256:{package.sha256}\n", encoding="utf-8")
        files = folder / "files" / package.name
        form = ["--no-binary", ":all:", "--no-build-isolation"] if package.is_archive else ["--only-binary", ":all:"]
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *form]
        subprocess.run([*argv, "--dest", str(files), "-r", str(pinned)], check=True)
        (file,) = files.iterdir()
        if file.suffix == ".gz":
            with tarfile.open(file) as archive:
                archive.extractall(target, filter="data")
        else:
            with zipfile.ZipFile(file) as archive:
                archive.extractall(target)
    return target / package.folder


def measure(packages: Sequence[Package], folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Every finding of every package: its severity, package, rule and path; an agent is one without a rule."""
    for package in packages:
        name = package.name.partition("==")[0]
        recovered = read_code(fetch(package, folder))
        for agent in recovered.stack.agents:
            yield "agent", name, "", agent.name
        for each in lint_recovered(recovered).findings:
            if not each.undecided:
                yield each.severity, name, each.rule, each.path


def summarise(packages: Sequence[Package], folder: Path) -> dict[str, object]:
    """The figures of these packages."""
    found = list(measure(packages, folder))
    for severity, *where in found:
        if severity in ("error", "warning"):
            print(severity, *where, file=sys.stderr)
    counts = Counter(severity for severity, *_ in found)
    errors = [(name, rule, path) for severity, name, rule, path in found if severity == "error"]
    judged = [JUDGED[each] for each in errors if each in JUDGED]
    return {
        "packages": len(packages),
        "agents": counts["agent"],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
        "precision": share(judged) if judged else None,
        "interval": wilson(sum(judged), len(judged)) if judged else None,
        "unjudged": [each for each in errors if each not in JUDGED],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.frameworks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", type=Path, help="where the packages are fetched to")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frameworks-") as temporary:
        folder: Path = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(json.dumps({"seen": summarise(SEEN, folder), "held_back": summarise(HELD_BACK, folder)}))


if __name__ == "__main__":
    main()
