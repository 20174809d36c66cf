"""Labels of what a plan writes somewhere and reads again: a file keeps the labels of all that was written into it.

A tool declares where its result comes from, and a folder may be the user's own; but what the plan itself has put there
is no more the user's than before. So the name that something was written to has labels of its own beside those of the
variables, under a key that no variable can have, and whatever names it later takes them on. Before a run a name that is
no literal may be any: what is written there may be found anywhere, and what is read there may be all that was written.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from bicameral.labels import NOTHING, PUBLIC, USER, Label, LabelTree, Source, join, join_all, taint
from bicameral.plans._plan import Call, walk
from bicameral.plans.check._checker import literal_arguments
from bicameral.plans.labels._rules import LabelEnv
from bicameral.tools import ATTACHED_SUFFIX, Argument, Registry, Tool, can_name, names_at, part_argument

_USER_ONLY = Label((), {USER})
_ADDRESS = re.compile(r"[^@/\\\s]+@[^@/\\\s]+")
CONTENT_SUFFIX = "'s content"
"""Behind the name of an argument: what the place holds that the argument names."""
_THING_PREFIX = ";"
"""Before the name of a thing that a tool spoke of in this run: who may read it."""
_PLACE_PREFIX = ":"
"""Where everything is that was written to a name which is not known; it is there as soon as anything was written."""


def recall_stored_labels(
    tool: Tool, shades: Mapping[str, LabelTree], values: Mapping[str, Any], env: LabelEnv
) -> tuple[Mapping[str, LabelTree], Label]:
    """The shades of a call's arguments as it is judged, and the label of all that it names and was written before.

    What goes out, or is read, with the name of a file is what the file holds. To write to it again is not.
    """
    if tool.attaches:
        shades = dict(shades) | _attachment_labels(tool, shades, values, env)
    if _PLACE_PREFIX not in env or tool.effect == "pure":
        return shades, NOTHING
    held = {name: _stored_label(tool, name, values, env) for name in shades}
    found = join_all(held.values())
    if found is NOTHING or (tool.changes and not tool.outbound):
        return shades, found

    def judged(name: str, shade: LabelTree) -> LabelTree:
        return taint(shade, found if tool.outbound and _is_content(tool.argument(name)) else held[name])

    if not (tool.outbound and tool.declared):
        return {name: judged(name, shade) for name, shade in shades.items()}, found
    # To name a file is one thing, and what it holds another, which goes out with its name.
    content = {name + CONTENT_SUFFIX: held[name] for name in shades if held[name] is not NOTHING}
    return dict(shades) | content, found


def _attachment_labels(
    tool: Tool, shades: Mapping[str, LabelTree], values: Mapping[str, Any], env: LabelEnv
) -> dict[str, LabelTree]:
    """What goes along with a call by its name, where all that is named is known: who may read all of it."""
    found: dict[str, LabelTree] = {}
    for part, label in tool.attached_labels(values, tuple(shades), ""):
        kind = tool.attaches[part].names
        named = names_at(part, values.get(part_argument(part))) if kind else ()
        known = [env.get(_thing_key(tool, kind, each)) for each in named] if kind else []
        if known and all(each is not None for each in known):
            readers = join_all(each.flat for each in known if each is not None).readers
            found[part + ATTACHED_SUFFIX] = Label(label.sources, readers)
    return found


def readers_after_call(
    tool: Tool,
    shades: Mapping[str, LabelTree],
    values: Mapping[str, Any],
    found: Label,
    pc: Label,
    env: LabelEnv,
    result: object,
) -> dict[str, LabelTree]:
    """What a call tells of the things that are kept elsewhere: who may read each, by its name.

    A call that changes something about one may change that; then only the user is known to be one who may. Which things
    a call tells of hangs on what decided that it is made, and how. So those who may not know that are told nothing new:
    else it would show later, in what goes out unasked. What was known before stays as it was, for the same reason.
    """
    known: dict[str, LabelTree] = {}
    told = tool.named_readers(result) if result is not None else {}
    if told:
        deciding = Label((), join_all((pc, found, *(shade.flat for shade in shades.values()))).readers)
        for (kind, name), readers in told.items():
            key, label = _thing_key(tool, kind, name), Label((), readers)
            if key not in env or env[key].flat.readers != label.readers:
                known[key] = join(label, deciding)
    kept = [key for key in env if key.startswith(_THING_PREFIX)] if tool.changes else []
    if kept:
        along = set(map(part_argument, tool.attaches))
        touched = {each for name, value in values.items() if name not in along for each in names_at(name, value)}
        naming = (name for name in shades if name not in along and _can_name_place(tool.argument(name), tool))
        deciding = Label((), join_all(shades[name].flat for name in naming).readers)
        for key in kept:
            if key.rpartition(_THING_PREFIX)[2] in touched:
                known[key] = _USER_ONLY
            elif deciding.readers is not PUBLIC:
                # It might have been this one.
                known[key] = join(known.get(key, env[key]).flat, deciding)
    return known


def _thing_key(tool: Tool, kind: str, name: str) -> str:
    return _THING_PREFIX + _THING_PREFIX.join((tool.toolbox, kind, name.replace(_THING_PREFIX, " ")))


def places_after_call(
    tool: Tool,
    shades: Mapping[str, LabelTree],
    values: Mapping[str, Any],
    found: Label,
    pc: Label,
    env: LabelEnv,
    result: object = None,
) -> dict[str, LabelTree]:
    """What has changed about the names that things were written to, after a call that may have written something.

    Where the service itself names what is made, the `result` has the name; before a run it may be any.
    """
    if tool.effect != "write":
        return {}
    label = join_all((pc, found, _fetched_label(tool, values), *(shade.flat for shade in shades.values())))
    changed: dict[str, LabelTree] = {_PLACE_PREFIX: env.get(_PLACE_PREFIX, NOTHING)}
    for name, shade in shades.items():
        if _can_name_place(tool.argument(name), tool) and not _is_content(tool.argument(name)):
            for key in _place_keys(values, name):
                known = changed.get(key, env.get(key, NOTHING))
                changed[key] = join(known.flat, label)
            if (hidden := shade.flat.readers) is not PUBLIC:
                # That another place was not written to is as private as the name is.
                changed[_PLACE_PREFIX] = join(changed[_PLACE_PREFIX].flat, Label((), hidden))
    if tool.has_fresh_names:
        named = (
            [_PLACE_PREFIX + _normalize_place(text) for text in tool.fresh_names(result)]
            if result is not None
            else [_PLACE_PREFIX]
        )
        for key in named:
            known = changed.get(key, env.get(key, NOTHING))
            changed[key] = join(known.flat, label)
    return changed


def places_after_branch(step: Any, registry: Registry, env: LabelEnv, inside: Label) -> dict[str, LabelTree]:
    """What has changed about places after a `when` or `each`: whether they were written to tells what decided it.

    The branch that was not taken counts like the other, and so do turns that there were not: who may see what such a
    place holds is who may see `inside`. Only readers are taken on. That strangers decide whether something is written
    is asked about before it is, and would otherwise make everything theirs that is read after a loop over mails.
    """
    if inside.readers is PUBLIC:
        return {}
    hidden = Label((), inside.readers)
    changed: dict[str, LabelTree] = {}
    for key in _written_places(step, registry):
        changed[_PLACE_PREFIX] = changed.get(_PLACE_PREFIX, env.get(_PLACE_PREFIX, NOTHING))
        changed[key] = join(changed.get(key, env.get(key, NOTHING)).flat, hidden)
    kept = [key for key in env if key.startswith(_THING_PREFIX)]
    if kept:
        literal, any_other = _touched_things(step, registry)
        touched = (key for key in kept if any_other or key.rpartition(_THING_PREFIX)[2] in literal)
        changed |= {key: join(env[key].flat, hidden) for key in touched}
    return changed


def _touched_things(step: Any, registry: Registry) -> tuple[frozenset[str], bool]:
    """The names of things about which any call in a step may change something, and whether it may be any other."""
    found: set[str] = set()
    any_other = False
    for _, inner in walk((step,)):
        tool = registry.get(inner.tool) if isinstance(inner, Call) else None
        if tool is None or not tool.changes or not isinstance(inner, Call):
            continue
        given = literal_arguments(inner.args)
        along = set(map(part_argument, tool.attaches))
        for name in inner.args:
            if name in given and name not in along:
                found |= set(names_at(name, given[name]))
            elif name not in along and _can_name_place(tool.argument(name), tool):
                any_other = True
    return frozenset(found), any_other


def _written_places(step: Any, registry: Registry) -> frozenset[str]:
    """The places that any call in a step may write to, as far as they are literals; the others may be any."""
    found: set[str] = set()
    for _, inner in walk((step,)):
        tool = registry.get(inner.tool) if isinstance(inner, Call) else None
        if tool is None or tool.effect != "write" or not isinstance(inner, Call):
            continue
        given = literal_arguments(inner.args)
        for name in inner.args:
            if _can_name_place(tool.argument(name), tool) and not _is_content(tool.argument(name)):
                found |= set(_place_keys(given, name))
    return frozenset(found)


def _fetched_label(tool: Tool, values: Mapping[str, Any]) -> Label:
    """The label of what a call itself fetches and writes down, such as an attachment, or a file that it moves.

    No argument holds that, and it is a stranger's unless all that is read is the user's own.
    """
    if tool.copies_content and not tool.is_owned_call(values):
        return Label((Source("third_party", tool.name),), {USER})
    return NOTHING


def variable_labels(env: LabelEnv) -> dict[str, LabelTree]:
    """The shades of variables alone."""
    return {name: shade for name, shade in env.items() if not name.startswith((_PLACE_PREFIX, _THING_PREFIX))}


def _place_keys(values: Mapping[str, Any], name: str) -> Iterator[str]:
    if name not in values:
        yield _PLACE_PREFIX
        return
    for text in _iter_texts(values[name]):
        yield _PLACE_PREFIX + _normalize_place(text)


def _stored_label(tool: Tool, name: str, values: Mapping[str, Any], env: LabelEnv) -> Label:
    if not _can_name_place(tool.argument(name), tool):
        return NOTHING
    if name not in values:
        return join_all(shade.flat for key, shade in env.items() if key.startswith(_PLACE_PREFIX))
    # Somebody's address is no place where things are kept.
    people = name in tool.receivers
    named = [_normalize_place(text) for text in _iter_texts(values[name]) if not (people and _ADDRESS.fullmatch(text))]
    if not named:
        return NOTHING
    held = (
        shade.flat
        for key, shade in env.items()
        if key.startswith(_PLACE_PREFIX)
        and (key == _PLACE_PREFIX or any(_is_same_place(key[1:], each) for each in named))
    )
    return join_all(held)


def _is_same_place(path: str, named: str) -> bool:
    """Whether a name may mean a path, or a folder around it. One of them may be given from further out."""
    if path == named or named in (".", "/") or path.startswith(named.rstrip("/") + "/"):
        return True
    return path.endswith("/" + named) or named.endswith("/" + path) or f"/{named}/" in path


def _normalize_place(text: str) -> str:
    return posixpath.normpath(text.strip().replace("\\", "/")).casefold()


def _iter_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list() | tuple():
            yield from (each for each in cast("list[object]", value) if isinstance(each, str))
        case _:
            return


def _is_content(argument: Argument | None) -> bool:
    return argument is None or argument.purpose == "carries"


def _can_name_place(argument: Argument | None, tool: Tool) -> bool:
    """Whether an argument can say where something is. Content cannot, unless it is a list of such names; nor can an
    argument that is declared to say only who receives a call.
    """
    if argument is None:
        return False
    directing = {each.name for each in tool.arguments if each.purpose == "directs"}
    if argument.name in tool.receivers and directing - set(tool.receivers):
        return False
    return can_name(argument.type, alone=argument.purpose != "carries", ids=tool.outbound)
