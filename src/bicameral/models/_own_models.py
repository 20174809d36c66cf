"""Own models: GGUF files that a user has added, in a registry file of the model store.

The registry says for each name where the file is and which SHA-256 it had when it was added. A file with another one is
not used any more. A file is checked before it is added: whole, of one part, a chat model with a template that lays out
every turn, and able to follow a grammar.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import string
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.cache import write_private_file
from bicameral.display import make_visible
from bicameral.errors import ModelError, Place
from bicameral.models._store_files import file_lock
from bicameral.models._weights import MIN_HASH_PREFIX, Weights, known_weights

if TYPE_CHECKING:
    from bicameral.models._gguf import GgufModel

REGISTRY_NAME = "own-models.json"
HUB_PREFIX = "hub:"
GGUF_SUFFIX = ".gguf"

_FORM = "own-models/1"
_MAX_REGISTRY_BYTES = 1 << 20
_MAX_TITLE = 60
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_HUB_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_HUB_FILE = re.compile(rf"({_HUB_PART}/{_HUB_PART})/((?:{_HUB_PART}/)*{_HUB_PART}\.gguf)", re.IGNORECASE)
_FIELDS = ("id", "title", "licence", "bytes", "sha256", "file", "hub_repo", "hub_file", "tested")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of the model hub."""

    repo: str
    file: str

    def __str__(self) -> str:
        return f"{HUB_PREFIX}{self.repo}/{self.file}"


def is_model_reference(name: str) -> bool:
    """Whether a name is the path of a GGUF file or a file of the hub, and not the name of weights."""
    return name.startswith(HUB_PREFIX) or name.lower().endswith(GGUF_SUFFIX)


def parse_reference(name: str) -> HubFile | Path:
    """The file of the hub (`hub:owner/repo/file.gguf`) or of this machine that a reference names."""
    if not name.startswith(HUB_PREFIX):
        return Path(name).expanduser()
    found = _HUB_FILE.fullmatch(name.removeprefix(HUB_PREFIX))
    if found is None:
        raise ModelError(
            "models.bad-reference",
            f"{name!r} names no file of the model hub",
            expected=f"{HUB_PREFIX}owner/repo/file{GGUF_SUFFIX}",
        )
    return HubFile(found[1], found[2])


def parse_source(text: str) -> HubFile | Path:
    """What `models add` is given: a file that is there, else a file of the hub, with or without `hub:`."""
    path = Path(text).expanduser()
    if not text.startswith(HUB_PREFIX) and not path.exists() and _HUB_FILE.fullmatch(text):
        return parse_reference(f"{HUB_PREFIX}{text}")
    return parse_reference(text) if text.startswith(HUB_PREFIX) else path


def check_name(name: str) -> str:
    """A name that an own model may have; raises `models.bad-name` or `models.name-taken`."""
    is_hash = len(name) >= MIN_HASH_PREFIX and set(name) <= set(string.hexdigits)
    if _NAME.fullmatch(name) is None or is_hash or name.endswith(GGUF_SUFFIX):
        raise ModelError(
            "models.bad-name",
            f"{name!r} cannot be the name of a model",
            expected="up to 64 small letters, digits, dots, hyphens and underscores, which do not look like a hash",
            fix="Give it another one with `--as NAME`.",
        )
    if any(name in (weights.id, weights.alias) for weights in known_weights()):
        raise _name_taken(name, "a model that this package knows has it")
    return name


def _name_taken(name: str, why: str) -> ModelError:
    return ModelError(
        "models.name-taken",
        f"the name {name!r} is taken: {why}",
        fix=f"Give another one with `--as NAME`, or take the other model out with `bicameral models rm {name}`.",
    )


def changed_error(weights: Weights, path: Path, sha256: str) -> ModelError:
    """The error for a file that is not the one that was added."""
    return ModelError(
        "models.changed",
        f"{path.name!r} is not the file that was added as {weights.alias!r}: its SHA-256 is {sha256}",
        place=Place(file=str(path)),
        expected=f"SHA-256 {weights.sha256} ({weights.bytes} bytes)",
        fix=f"It is not used. If you changed it yourself, `bicameral models rm {weights.alias}` and add it again.",
    )


class OwnModels:
    """The registry of own models in a folder of weights.

    Whoever could write it could choose the model that plans, so it is used only if it belongs to this user (or to the
    administrator) and nobody else may write it.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / REGISTRY_NAME

    def entries(self) -> list[Weights]:
        """All own models, in the order in which they were added; raises `models.bad-registry`."""
        try:
            found = self.file.stat()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            # A folder that this process may not enter has no models for it, and none that its tools could change.
            return []
        if sys.platform != "win32" and (
            found.st_uid not in (os.geteuid(), 0) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        ):
            raise self._bad("somebody else may write it", "Make it yours alone (`chmod go-w`), after looking into it.")
        try:
            if found.st_size > _MAX_REGISTRY_BYTES:
                raise ValueError("it is too large")
            return [_read_entry(raw) for raw in _read_list(self.file.read_bytes())]
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._bad(f"it cannot be read ({error})", "Delete it, and add your models again.") from None

    def find(self, wanted: str) -> Weights | None:
        """The own model with this name or beginning of its SHA-256."""
        entries = self.entries()
        digest = wanted.removeprefix("sha256:")
        is_hash = len(digest) >= MIN_HASH_PREFIX and set(digest) <= set(string.hexdigits)
        by_name = (each for each in entries if each.id == wanted)
        by_hash = (each for each in entries if is_hash and each.sha256.startswith(digest))
        return next(by_name, None) or next(by_hash, None)

    def find_reference(self, reference: HubFile | Path) -> Weights | None:
        """The own model that is this file."""
        if isinstance(reference, HubFile):
            wanted = (reference.repo, reference.file)
            return next((each for each in self.entries() if (each.hub_repo, each.hub_file) == wanted), None)
        path = os.path.abspath(reference)
        return next((each for each in self.entries() if each.file == path), None)

    def record(self, weights: Weights) -> Weights:
        """Add an entry, or replace the one of the same name and file; another file is `models.name-taken`."""

        def add(entries: list[Weights]) -> list[Weights]:
            for each in entries:
                if each.id == weights.id:
                    if (each.sha256, each.file, each.hub_repo) != (weights.sha256, weights.file, weights.hub_repo):
                        raise _name_taken(weights.id, f"it is the name of {each.file or each.hub_file}")
                    return [weights if other is each else other for other in entries]
            return [*entries, weights]

        self._change(add)
        return weights

    def mark_tested(self, weights: Weights) -> None:
        """Record that a model can follow a grammar."""
        same = (weights.id, weights.sha256)
        self._change(
            lambda found: [replace(each, tested=True) if (each.id, each.sha256) == same else each for each in found]
        )

    def forget(self, name: str) -> bool:
        """Take an entry out; return whether there was one."""
        was_there = False

        def take_out(entries: list[Weights]) -> list[Weights]:
            nonlocal was_there
            was_there = any(each.id == name for each in entries)
            return [each for each in entries if each.id != name]

        self._change(take_out)
        return was_there

    def _change(self, change: Callable[[list[Weights]], list[Weights]]) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            # Two processes that add a model at the same time must not lose one of them.
            with file_lock(self.file.with_suffix(".lock"), on_wait=lambda: None):
                entries = [{name: getattr(each, name) for name in _FIELDS} for each in change(self.entries())]
                text = json.dumps({"form": _FORM, "models": entries}, indent=1) + "\n"
                write_private_file(self.file, [text.encode()], sync=True)
        except OSError as error:
            raise ModelError(
                "models.store-unusable",
                f"the registry of own models cannot be written: {error.strerror or error}",
                place=Place(file=str(self.file)),
                fix="Set BICAMERAL_MODELS to a folder that you can write.",
            ) from error

    def _bad(self, why: str, fix: str) -> ModelError:
        message = f"the registry of own models is not used: {why}"
        return ModelError("models.bad-registry", message, place=Place(file=str(self.file)), fix=fix)


def _read_list(raw: bytes) -> list[dict[str, Any]]:
    content: Any = json.loads(raw)
    if not isinstance(content, dict) or cast("dict[str, Any]", content).get("form") != _FORM:
        raise ValueError("it is of another version")
    return cast("list[dict[str, Any]]", content["models"])


def _read_entry(raw: dict[str, Any]) -> Weights:
    facts = {name: raw[name] for name in _FIELDS}
    texts = ("id", "title", "licence", "sha256")
    optional = ("file", "hub_repo", "hub_file")
    is_typed = (
        all(isinstance(facts[name], str) for name in texts)
        and all(facts[name] is None or isinstance(facts[name], str) for name in optional)
        and isinstance(facts["bytes"], int)
        and isinstance(facts["tested"], bool)
    )
    is_hash = is_typed and len(facts["sha256"]) == 64 and set(facts["sha256"]) <= set(string.hexdigits)
    if not is_hash or _NAME.fullmatch(facts["id"]) is None or not (facts["file"] or facts["hub_file"]):
        raise ValueError("an entry is not as it must be")
    return Weights(alias=facts["id"], own=True, **facts)


def own_weights(
    path: Path, name: str | None, sha256: str, facts: GgufModel, *, hub: HubFile | None = None, tested: bool = True
) -> Weights:
    """The entry of a file that was inspected; without a name it is named after the file and its hash."""
    stem = Path(hub.file).stem if hub else path.stem
    return Weights(
        id=name or f"{_slug(stem)[:54]}-{sha256[:8]}",
        alias=name or f"{_slug(stem)[:54]}-{sha256[:8]}",
        # The header is a stranger's text: it is shown to people only, and without what could steer a terminal.
        title=_clean(facts.name) or _clean(stem),
        licence=_clean(facts.licence) or "unknown",
        bytes=path.stat().st_size,
        sha256=sha256,
        hub_repo=hub.repo if hub else None,
        hub_file=hub.file if hub else None,
        file=None if hub else os.path.abspath(path),
        own=True,
        tested=tested,
    )


def suggested_name(source: HubFile | Path) -> str:
    """The name of a model that is added without one: its file's, in small letters."""
    return _slug(Path(source.file).stem if isinstance(source, HubFile) else source.stem)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64] or "model"


def _clean(text: str) -> str:
    return " ".join(make_visible(text[: 4 * _MAX_TITLE], strict=True).split())[:_MAX_TITLE]


_SPEAKERS: Sequence[tuple[str, ...]] = (("user",), ("system", "user"), ("system", "user", "assistant", "user"))


def check_template(path: Path) -> bool:
    """Check that the template of a file lays out conversations; return whether control tokens keep turns apart."""
    from bicameral.models._prompts import read_vocabulary

    vocabulary = read_vocabulary(path, own_template=True)
    assert vocabulary.template is not None
    for speakers in _SPEAKERS:
        _with_place(path, vocabulary.template.layout, speakers)
    return vocabulary.template.is_marked(vocabulary.control)


def _with_place(path: Path, call: Callable[[Iterable[str]], object], speakers: Iterable[str]) -> None:
    try:
        call(speakers)
    except ModelError as error:
        error.place = error.place or Place(file=str(path))
        raise


_PROBE_TOKENS = 24
_PROBE_GRAMMAR = '%llguidance {}\nstart: "{\\"ready\\": " ("true" | "false") "}"\n'
_PROBE_REPLIES = ('{"ready": true}', '{"ready": false}')


async def probe_grammar(path: Path, *, threads: int | None = None) -> None:
    """Let a model write a few tokens under a grammar; raises `models.no-grammar` if it does not follow it."""
    from bicameral.models._local import LocalProvider
    from bicameral.models._protocol import Message, ModelRequest

    asked = (Message("system", "Reply with JSON."), Message("user", "Are you ready?"))
    provider = LocalProvider(path, name=f"local:{path.name}", context=512, threads=threads, own_template=True)
    try:
        request = ModelRequest(asked, grammar=_PROBE_GRAMMAR, max_tokens=_PROBE_TOKENS, timeout=None)
        reply = await provider.generate(request)
    except ModelError as error:
        if error.code not in ("models.bad-grammar", "models.engine-failed"):
            raise
        raise _no_grammar(path, "the engine could not hold it to a small JSON object") from None
    finally:
        await provider.aclose()
    if reply.text not in _PROBE_REPLIES:
        raise _no_grammar(path, f"it wrote {reply.text[:60]!r} where the grammar allows {_PROBE_REPLIES[0]!r}")


def probe_in_thread(path: Path, *, threads: int | None = None) -> None:
    """`probe_grammar` for callers without an event loop, or inside of one that they do not await."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(probe_grammar(path, threads=threads))).result()


def _no_grammar(path: Path, why: str) -> ModelError:
    return ModelError(
        "models.no-grammar",
        f"this model cannot follow a grammar: {why}",
        place=Place(file=str(path)),
        fix="Plans and forms are written under grammars, so another model is needed.",
    )


def own_files(folder: Path) -> list[Path]:
    """The files of own models outside of the store; none if the registry cannot be read."""
    with suppress(ModelError):
        return [Path(each.file) for each in OwnModels(folder).entries() if each.file]
    return []
