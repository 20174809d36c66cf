"""The architecture of agents in a folder of Python code, for every framework that is known."""

from __future__ import annotations

from pathlib import Path

from bicameral.catalog.frameworks._langgraph import LangGraphReader
from bicameral.catalog.frameworks._modules import Project
from bicameral.catalog.frameworks._openai_agents import OpenAIAgentsReader
from bicameral.catalog.frameworks._pydantic_ai import PydanticAIReader
from bicameral.catalog.frameworks._recovery import ArchitectureDraft, RecoveredStack
from bicameral.errors import CatalogError, Place

_READERS = (PydanticAIReader, LangGraphReader, OpenAIAgentsReader)


def read_code(path: Path | str) -> RecoveredStack:
    """The architecture of the agents in a Python file or folder. The code is parsed, and never imported or run.

    Example:
        >>> recovered = read_code("support_bot/")
        >>> [agent.name for agent in recovered.stack.agents]
        ['triage', 'refunds']
    """
    root = Path(path)
    place = Place(file=str(root))
    if not root.exists():
        raise CatalogError("stack.cannot-read", "there is no such file or folder", place=place, fix="Check the path.")
    project = Project(root)
    draft = ArchitectureDraft(root.stem or root.resolve().name, str(root), "code")
    for at, what in project.unreadable:
        draft.miss(at, what)
    if not project.modules:
        at, what = project.unreadable[0] if project.unreadable else (place, "there is no Python in it")
        raise CatalogError("stack.cannot-read", what, place=at)
    for reader in _READERS:
        reader(project, draft).read()
    return draft.build()
