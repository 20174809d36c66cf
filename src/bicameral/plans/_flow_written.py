"""What a plan writes somewhere and reads again: a file keeps the labels of all that was written into it.

A tool declares where its result comes from, and a folder may be the user's own; but what the plan itself has put there
is no more the user's than before. So the name that something was written to has a shade of its own beside those of the
variables, under a key that no variable can have, and whatever names it later takes that on. Before a run a name that is
no literal may be any: what is written there may be found anywhere, and what is read there may be all that was written.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from bicameral.labels import NOTHING, PUBLIC, USER, Label, Shade, Source, join, join_all, tainted
from bicameral.tools import ATTACHED, Argument, Registry, Tool, argument_of, can_name, named_in

from ._flow_calls import ShadeEnv
from ._plan import Call, walk
from ._steps import literals

_ALONE = Label((), {USER})
_ADDRESS = re.compile(r"[^@/\\\s]+@[^@/\\\s]+")
CONTENT = "'s content"
"""Behind the name of an argument: what the place holds that the argument names."""
_KEPT = ";"
"""Before the name of a thing that a tool spoke of in this run: who may read it."""
_ANYWHERE = ":"
"""Where everything is that was written to a name which is not known; it is there as soon as anything was written."""


def found_again(
    tool: Tool, shades: Mapping[str, Shade], values: Mapping[str, Any], env: ShadeEnv
) -> tuple[Mapping[str, Shade], Label]:
    """The shades of a call's arguments as it is judged, and the label of all that it names and was written before.

    What goes out, or is read, with the name of a file is what the file holds. To write to it again is not.
    """
    if tool.attaches:
        shades = dict(shades) | _along(tool, shades, values, env)
    if _ANYWHERE not in env or tool.effect == "pure":
        return shades, NOTHING
    held = {name: _held(tool, name, values, env) for name in shades}
    found = join_all(held.values())
    if found is NOTHING or (tool.changes and not tool.outbound):
        return shades, found

    def judged(name: str, shade: Shade) -> Shade:
        return tainted(shade, found if tool.outbound and _carries(tool.argument(name)) else held[name])

    if not (tool.outbound and tool.declared):
        return {name: judged(name, shade) for name, shade in shades.items()}, found
    # To name a file is one thing, and what it holds another, which goes out with its name.
    content = {name + CONTENT: held[name] for name in shades if held[name] is not NOTHING}
    return dict(shades) | content, found


def _along(tool: Tool, shades: Mapping[str, Shade], values: Mapping[str, Any], env: ShadeEnv) -> dict[str, Shade]:
    """What goes along with a call by its name, where all that is named is known: who may read all of it."""
    found: dict[str, Shade] = {}
    for part, label in tool.attached(values, tuple(shades), ""):
        kind = tool.attaches[part].names
        named = named_in(part, values.get(argument_of(part))) if kind else ()
        known = [env.get(_kept(tool, kind, each)) for each in named] if kind else []
        if known and all(each is not None for each in known):
            readers = join_all(each.flat for each in known if each is not None).readers
            found[part + ATTACHED] = Label(label.sources, readers)
    return found


def readers_after_call(
    tool: Tool,
    shades: Mapping[str, Shade],
    values: Mapping[str, Any],
    found: Label,
    pc: Label,
    env: ShadeEnv,
    result: object,
) -> dict[str, Shade]:
    """What a call tells of the things that are kept elsewhere: who may read each, by its name.

    A call that changes something about one may change that; then only the user is known to be one who may. Which things
    a call tells of hangs on what decided that it is made, and how. So those who may not know that are told nothing new:
    else it would show later, in what goes out unasked. What was known before stays as it was, for the same reason.
    """
    known: dict[str, Shade] = {}
    told = tool.readers_of(result) if result is not None else {}
    if told:
        deciding = Label((), join_all((pc, found, *(shade.flat for shade in shades.values()))).readers)
        for (kind, name), readers in told.items():
            key, label = _kept(tool, kind, name), Label((), readers)
            if key not in env or env[key].flat.readers != label.readers:
                known[key] = join(label, deciding)
    kept = [key for key in env if key.startswith(_KEPT)] if tool.changes else []
    if kept:
        along = set(map(argument_of, tool.attaches))
        touched = {each for name, value in values.items() if name not in along for each in named_in(name, value)}
        naming = (name for name in shades if name not in along and _may_name(tool.argument(name), tool))
        deciding = Label((), join_all(shades[name].flat for name in naming).readers)
        for key in kept:
            if key.rpartition(_KEPT)[2] in touched:
                known[key] = _ALONE
            elif deciding.readers is not PUBLIC:
                # It might have been this one.
                known[key] = join(known.get(key, env[key]).flat, deciding)
    return known


def _kept(tool: Tool, kind: str, name: str) -> str:
    return _KEPT + _KEPT.join((tool.toolbox, kind, name.replace(_KEPT, " ")))


def written(
    tool: Tool,
    shades: Mapping[str, Shade],
    values: Mapping[str, Any],
    found: Label,
    pc: Label,
    env: ShadeEnv,
    result: object = None,
) -> dict[str, Shade]:
    """What has changed about the names that things were written to, after a call that may have written something.

    Where the service itself names what is made, the `result` has the name; before a run it may be any.
    """
    if tool.effect != "write":
        return {}
    label = join_all((pc, found, _brought(tool, values), *(shade.flat for shade in shades.values())))
    changed: dict[str, Shade] = {_ANYWHERE: env.get(_ANYWHERE, NOTHING)}
    for name, shade in shades.items():
        if _may_name(tool.argument(name), tool) and not _carries(tool.argument(name)):
            for key in _keys(values, name):
                known = changed.get(key, env.get(key, NOTHING))
                changed[key] = join(known.flat, label)
            if (hidden := shade.flat.readers) is not PUBLIC:
                # That another place was not written to is as private as the name is.
                changed[_ANYWHERE] = join(changed[_ANYWHERE].flat, Label((), hidden))
    if tool.names_anew:
        named = [_ANYWHERE + _plain(text) for text in tool.new_names(result)] if result is not None else [_ANYWHERE]
        for key in named:
            known = changed.get(key, env.get(key, NOTHING))
            changed[key] = join(known.flat, label)
    return changed


def written_or_not(step: Any, registry: Registry, env: ShadeEnv, inside: Label) -> dict[str, Shade]:
    """What has changed about places after a `when` or `each`: whether they were written to tells what decided it.

    The branch that was not taken counts like the other, and so do turns that there were not: who may see what such a
    place holds is who may see `inside`. Only readers are taken on. That strangers decide whether something is written
    is asked about before it is, and would otherwise make everything theirs that is read after a loop over mails.
    """
    if inside.readers is PUBLIC:
        return {}
    hidden = Label((), inside.readers)
    changed: dict[str, Shade] = {}
    for key in _may_write(step, registry):
        changed[_ANYWHERE] = changed.get(_ANYWHERE, env.get(_ANYWHERE, NOTHING))
        changed[key] = join(changed.get(key, env.get(key, NOTHING)).flat, hidden)
    kept = [key for key in env if key.startswith(_KEPT)]
    if kept:
        literal, any_other = _may_touch(step, registry)
        touched = (key for key in kept if any_other or key.rpartition(_KEPT)[2] in literal)
        changed |= {key: join(env[key].flat, hidden) for key in touched}
    return changed


def _may_touch(step: Any, registry: Registry) -> tuple[frozenset[str], bool]:
    """The names of things about which any call in a step may change something, and whether it may be any other."""
    found: set[str] = set()
    any_other = False
    for _, inner in walk((step,)):
        tool = registry.get(inner.tool) if isinstance(inner, Call) else None
        if tool is None or not tool.changes or not isinstance(inner, Call):
            continue
        given = literals(inner.args)
        along = set(map(argument_of, tool.attaches))
        for name in inner.args:
            if name in given and name not in along:
                found |= set(named_in(name, given[name]))
            elif name not in along and _may_name(tool.argument(name), tool):
                any_other = True
    return frozenset(found), any_other


def _may_write(step: Any, registry: Registry) -> frozenset[str]:
    """The places that any call in a step may write to, as far as they are literals; the others may be any."""
    found: set[str] = set()
    for _, inner in walk((step,)):
        tool = registry.get(inner.tool) if isinstance(inner, Call) else None
        if tool is None or tool.effect != "write" or not isinstance(inner, Call):
            continue
        given = literals(inner.args)
        for name in inner.args:
            if _may_name(tool.argument(name), tool) and not _carries(tool.argument(name)):
                found |= set(_keys(given, name))
    return frozenset(found)


def _brought(tool: Tool, values: Mapping[str, Any]) -> Label:
    """The label of what a call itself fetches and writes down, such as an attachment, or a file that it moves.

    No argument holds that, and it is a stranger's unless all that is read is the user's own.
    """
    if tool.fetches and not tool.reads_own(values):
        return Label((Source("third_party", tool.name),), {USER})
    return NOTHING


def variables_of(env: ShadeEnv) -> dict[str, Shade]:
    """The shades of variables alone."""
    return {name: shade for name, shade in env.items() if not name.startswith((_ANYWHERE, _KEPT))}


def _keys(values: Mapping[str, Any], name: str) -> Iterator[str]:
    if name not in values:
        yield _ANYWHERE
        return
    for text in _texts(values[name]):
        yield _ANYWHERE + _plain(text)


def _held(tool: Tool, name: str, values: Mapping[str, Any], env: ShadeEnv) -> Label:
    if not _may_name(tool.argument(name), tool):
        return NOTHING
    if name not in values:
        return join_all(shade.flat for key, shade in env.items() if key.startswith(_ANYWHERE))
    # Somebody's address is no place where things are kept.
    people = name in tool.receivers
    named = [_plain(text) for text in _texts(values[name]) if not (people and _ADDRESS.fullmatch(text))]
    if not named:
        return NOTHING
    held = (
        shade.flat
        for key, shade in env.items()
        if key.startswith(_ANYWHERE) and (key == _ANYWHERE or any(_same_place(key[1:], each) for each in named))
    )
    return join_all(held)


def _same_place(path: str, named: str) -> bool:
    """Whether a name may mean a path, or a folder around it. One of them may be given from further out."""
    if path == named or named in (".", "/") or path.startswith(named.rstrip("/") + "/"):
        return True
    return path.endswith("/" + named) or named.endswith("/" + path) or f"/{named}/" in path


def _plain(text: str) -> str:
    return posixpath.normpath(text.strip().replace("\\", "/")).casefold()


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list() | tuple():
            yield from (each for each in cast("list[object]", value) if isinstance(each, str))
        case _:
            return


def _carries(argument: Argument | None) -> bool:
    return argument is None or argument.purpose == "carries"


def _may_name(argument: Argument | None, tool: Tool) -> bool:
    """Whether an argument can say where something is. Content cannot, unless it is a list of such names; nor can an
    argument that is declared to say only who receives a call.
    """
    if argument is None:
        return False
    directing = {each.name for each in tool.arguments if each.purpose == "directs"}
    if argument.name in tool.receivers and directing - set(tool.receivers):
        return False
    return can_name(argument.type, alone=argument.purpose != "carries", ids=tool.outbound)
