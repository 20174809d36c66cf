"""Whether a request says that the content of a file shall be replaced, in English, German, French and Spanish.

Words that speak of replacing ("overwrite", "update", "in place") count for every file that the plan writes. Words that
speak of editing ("sort", "remove") count only for a file that the plan reads, too: a result that is stored elsewhere
replaces something that nobody spoke of. Only words of the request are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from posixpath import normpath

from bicameral.planning._effect_words import ordering_text
from bicameral.planning._language import fold
from bicameral.plans import Call, Const, Plan, walk
from bicameral.text import lazy_pattern
from bicameral.tools import Registry

# Without accents, as `fold` and `ordering_text` give a request.
_REPLACING = lazy_pattern(
    r"\b(?:"
    r"overwrit\w*|replac\w*|rewrit\w*|updat\w*|refresh\w*|regenerat\w*|renew\w*|edit|edited|modif(?:y|ies|ied)|"
    r"amend\w*|revis(?:e|ed|es)|correct(?:s|ed)?|in[ -]place|save over|write over|same file|"
    r"u(?:e)?berschreib\w*|ersetz\w*|aktualisier\w*|erneuer\w*|auffrisch\w*|bearbeit\w*|(?:ae?)nder(?:e|n|st|t)|"
    r"korrigier\w*|u(?:e)?berarbeit\w*|berichtig\w*|umschreib\w*|dieselbe datei|derselben datei|"
    r"ecras\w*|remplac\w*|reecri\w*|actualis\w*|mets? a jour|mettre a jour|mise a jour|modifi\w*|corrig\w*|"
    r"edit(?:e|er|ez)|meme fichier|rafraichi\w*|"
    r"sobre?scrib\w*|reemplaz\w*|reemplac\w*|sustitu\w*|reescrib\w*|actualiz\w*|actualic\w*|edita\w*|"
    r"mismo archivo|mismo fichero"
    r")\b"
)
_EDITING = lazy_pattern(
    r"\b(?:"
    r"sort\w*|order|reorder|remov\w*|delet\w*|strip\w*|drop\w*|dedup\w*|clean\w*|tidy|trim\w*|fix\w*|add|adds|insert\w*|"
    r"chang\w*|renam\w*|mark|marks|fill\w*|convert\w*|format\w*|reformat\w*|merg\w*|join\w*|split\w*|capitali[sz]e\w*|"
    r"sortier\w*|ordne|entfern\w*|lo(?:e)?sch\w*|streich\w*|bereinig\w*|fu(?:e)?g\w*|erga(?:e)?nz\w*|markier\w*|"
    r"formatier\w*|"
    r"tri(?:e|er|ez)|supprim\w*|enlev\w*|retir\w*|efface\w*|nettoi\w*|nettoy\w*|ajout\w*|inser\w*|renomm\w*|"
    r"orden\w*|elimin\w*|quita\w*|borra\w*|limpia\w*|anad\w*|agreg\w*|inserta\w*|cambi\w*|marca\w*"
    r")\b"
)


@dataclass(frozen=True, slots=True)
class ReplaceScope:
    """Which files a request says may be replaced.

    Args:
        all_files: Whether it says so of what it writes, whatever that is.
        edited: The paths that the plan reads, if the request speaks of editing.
    """

    all_files: bool = False
    edited: frozenset[str] = frozenset()

    def covers(self, path: str) -> bool:
        """Whether the request says that the content of the file at this real path may be replaced."""
        return self.all_files or any(path == each or path.endswith(f"/{each}") for each in self.edited)


def replace_scope(request: str, plan: Plan | None, registry: Registry) -> ReplaceScope:
    """What a request says about the files that its plan would replace.

    Args:
        request: The request, in the user's own words.
        plan: Its plan, with references bound; None for a conversation.
        registry: The tools.
    """
    # What the request denies ("do not overwrite it") or only quotes is no order, and not in this text.
    ordered = ordering_text(request)
    if _REPLACING.search(ordered):
        return ReplaceScope(all_files=True)
    # To change a part of a text is no order for an effect, and so not in that text either.
    if plan is None or not _EDITING.search(fold(request)):
        return ReplaceScope()
    return ReplaceScope(edited=_read_paths(plan, registry))


def _read_paths(plan: Plan, registry: Registry) -> frozenset[str]:
    """The paths of files that a plan names and reads."""
    found = set[str]()
    for _, step in walk(plan.steps):
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        if tool is None or tool.effect != "read" or not isinstance(step, Call):
            continue
        for value in step.args.values():
            if isinstance(value, Const) and isinstance(value.value, str) and value.value:
                found.add(normpath(value.value).removeprefix("./"))
    return frozenset(found - {"."})
