"""The modules of a folder as syntax trees, and what a name in them stands for. Nothing is imported or run.

A name is followed through assignments, imports and aliases, inside a module and across the modules of the folder. What
has several values, or depends on the run of the program, is not guessed.
"""

from __future__ import annotations

import ast
import builtins
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from bicameral.errors import CatalogError, Place

MAX_FILES = 2_000
MAX_FILE_BYTES = 1_000_000
MAX_BYTES = 50_000_000
MAX_HOPS = 30
"""Names that are followed one after another."""
MAX_ITEMS = 1_000
"""Items of a list, and parts that it is made of."""
MAX_ASSIGNED = 20
"""Values of one name that are looked at."""
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist"})

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that an import binds: a module, or something in it."""

    module: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A name that is bound to something that only the run of the program decides; its type may be known."""

    annotation: ast.expr | None = None


Binding: TypeAlias = ast.expr | FunctionNode | ast.ClassDef | Imported | Opaque


@dataclass(eq=False, slots=True)
class Scope:
    """The names of a module, a class or a function."""

    module: Module
    node: ast.AST
    parent: Scope | None = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict[str, list[Binding]])

    def bind(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)

    def enclosing_class(self) -> Scope | None:
        """The class in whose body this scope is."""
        scope: Scope | None = self
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return scope


@dataclass(eq=False, slots=True)
class Module:
    """A module: its tree, its names, and every call in it."""

    name: str
    file: Path
    shown: str
    """The file as it is shown in findings."""
    tree: ast.Module
    is_package: bool
    scope: Scope = field(init=False)
    calls: list[tuple[ast.Call, Scope]] = field(default_factory=list[tuple[ast.Call, "Scope"]])
    methods: dict[tuple[str, str], list[tuple[ast.Call, Scope]]] = field(
        default_factory=dict[tuple[str, str], list[tuple[ast.Call, "Scope"]]]
    )
    """The calls of methods of a name, by the name and the method."""
    functions: list[tuple[FunctionNode, Scope]] = field(default_factory=list[tuple[FunctionNode, "Scope"]])
    parents: dict[int, ast.AST] = field(default_factory=dict[int, ast.AST])
    scopes: dict[int, Scope] = field(default_factory=dict[int, "Scope"])
    """The scope of each function and class, by its node."""
    stars: list[str] = field(default_factory=list[str])
    """Modules of which everything is imported."""
    packages: set[str] = field(default_factory=set[str])
    """The packages that it imports from."""

    def __post_init__(self) -> None:
        self.scope = Scope(self, self.tree)
        _index_module(self)

    def place(self, node: ast.AST) -> Place:
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        return Place(file=self.shown, line=line, column=None if column is None else column + 1)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """What contains a node, from the inside outwards."""
        above = self.parents.get(id(node))
        while above is not None:
            yield above
            above = self.parents.get(id(above))


def _index_module(module: Module) -> None:
    """Collect the names, calls and functions of a module. Deep trees are walked without recursion."""
    waiting: list[tuple[ast.AST, Scope]] = [(module.tree, module.scope)]
    while waiting:
        node, scope = waiting.pop()
        _bind_names(module, node, scope)
        inner = scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            inner = module.scopes[id(node)] = Scope(module, node, scope)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                module.functions.append((node, scope))
            if not isinstance(node, ast.ClassDef):
                given = node.args
                for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                    if each is not None:
                        inner.bind(each.arg, Opaque(each.annotation))
        elif isinstance(node, ast.Call):
            module.calls.append((node, scope))
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                module.methods.setdefault((node.func.value.id, node.func.attr), []).append((node, scope))
        outside = {id(each) for each in getattr(node, "decorator_list", ())}
        children = list(ast.iter_child_nodes(node))
        for child in children:
            module.parents[id(child)] = node
        waiting.extend((child, scope if id(child) in outside else inner) for child in reversed(children))


def _bind_names(module: Module, node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Import():
            for each in node.names:
                module.packages.add(each.name.partition(".")[0])
                scope.bind(each.asname or each.name.partition(".")[0], Imported(_alias_module(each)))
        case ast.ImportFrom():
            source = _import_source(module, node)
            module.packages.add(source.partition(".")[0])
            for each in node.names:
                if each.name == "*":
                    module.stars.append(source)
                else:
                    scope.bind(each.asname or each.name, Imported(source, each.name))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            scope.bind(node.name, node)
        case ast.Assign():
            for target in node.targets:
                _bind_target(scope, target, node.value)
        case ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
            _bind_target(scope, node.target, value)
        case ast.AugAssign() | ast.For() | ast.AsyncFor() | ast.comprehension():
            _bind_target(scope, node.target, Opaque())
        case ast.withitem(optional_vars=ast.expr() as target):
            _bind_target(scope, target, node.context_expr)
        case ast.ExceptHandler(name=str() as name):
            scope.bind(name, Opaque())
        case _:
            pass


def _alias_module(alias: ast.alias) -> str:
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _import_source(module: Module, node: ast.ImportFrom) -> str:
    """The module of a `from … import`. A relative one is counted from the folder, and begins with a dot."""
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    base = package[: max(0, len(package) - node.level + 1)]
    return "." + ".".join([*base, *([node.module] if node.module else [])])


def _bind_target(scope: Scope, target: ast.expr, value: Binding) -> None:
    waiting = [target]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Name):
            scope.bind(each.id, value if each is target else Opaque())
        elif isinstance(each, ast.Tuple | ast.List):
            waiting.extend(each.elts)
        elif isinstance(each, ast.Starred):
            waiting.append(each.value)
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
            owner = scope.enclosing_class()
            if owner is not None:
                owner.bind(f"self.{each.attr}", value if each is target else Opaque())


@dataclass(frozen=True, slots=True)
class External:
    """Something of a module outside of the folder, by its qualified name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Defined:
    """Something that is written in the folder: a function, a class, a module, or an expression."""

    node: ast.AST
    scope: Scope

    @property
    def place(self) -> Place:
        return self.scope.module.place(self.node)


Resolved: TypeAlias = External | Defined | None


class Project:
    """The modules of a folder, or of one file, and what their names stand for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[Path, Module] = {}
        self.unreadable: list[tuple[Place, str]] = []
        self._call_names: dict[int, str] = {}
        files = [root] if root.is_file() else list(self._list_files())
        self._folder = root.parent if root.is_file() else root
        size = 0
        for file in files:
            size += self._read_module(file)
            if size > MAX_BYTES:
                raise CatalogError(
                    "stack.too-large",
                    f"there are more than {MAX_BYTES:,} bytes of code",
                    place=Place(file=str(root)),
                    fix="Check a smaller folder.",
                )

    def _list_files(self) -> Iterator[Path]:
        count = 0
        # Links are not followed: what they lead to may be outside of the folder.
        for folder, names, files in os.walk(self.root, followlinks=False):
            names[:] = sorted(name for name in names if name not in _SKIPPED_FOLDERS and not name.startswith("."))
            for name in sorted(files):
                file = Path(folder, name)
                if not name.endswith(".py"):
                    continue
                if file.is_symlink():
                    self.unreadable.append((Place(file=str(file)), "this is a link, and is not followed"))
                    continue
                count += 1
                if count > MAX_FILES:
                    raise CatalogError(
                        "stack.too-large",
                        f"there are more than {MAX_FILES:,} modules",
                        place=Place(file=str(self.root)),
                        fix="Check a smaller folder.",
                    )
                yield file

    def _read_module(self, file: Path) -> int:
        """Read one file; its size."""
        place = Place(file=str(file))
        try:
            size = file.stat().st_size
            if size > MAX_FILE_BYTES:
                self.unreadable.append((place, f"the file has more than {MAX_FILE_BYTES:,} bytes"))
                return 0
            text = file.read_bytes().decode("utf-8-sig")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except UnicodeDecodeError:
            self.unreadable.append((place, "the file is not text in UTF-8"))
            return 0
        except SyntaxError as error:
            self.unreadable.append((Place(file=str(file), line=error.lineno), "this is no Python"))
            return 0
        except (ValueError, RecursionError, MemoryError):
            self.unreadable.append((place, "this is no Python, or nested too deeply"))
            return 0
        except OSError as error:
            self.unreadable.append((place, f"the file cannot be read: {error.strerror or type(error).__name__}"))
            return 0
        parts = list(file.relative_to(self._folder).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        self.modules[file] = Module(name, file, str(file), tree, is_package)
        return size

    def find_module(self, name: str, importer: Module) -> Module | None:
        """The module of the folder that an import in another one means."""
        relative = name.startswith(".")
        parts = [part for part in name.split(".") if part]
        roots = [self._folder] if relative else [self._folder, self._folder / "src"]
        if not relative and importer.file.parent / "__init__.py" not in self.modules:
            # A script finds the modules beside it.
            roots.insert(0, importer.file.parent)
        if self._folder / "__init__.py" in self.modules and parts[:1] == [self._folder.name]:
            roots.append(self._folder.parent)
        for root in roots:
            path = root.joinpath(*parts)
            found = self.modules.get(path.with_name(f"{path.name}.py")) if parts else None
            found = found or self.modules.get(path / "__init__.py")
            if found is not None:
                return found
        return None

    def calls(self) -> Iterator[tuple[ast.Call, Scope]]:
        """Every call of every module."""
        for module in self.modules.values():
            yield from module.calls

    def resolve(self, node: ast.AST, scope: Scope, hops: int = MAX_HOPS) -> Resolved:
        """What an expression stands for; None if that cannot be told."""
        if hops <= 0:
            return None
        match node:
            case ast.Name():
                return self._resolve_name(node.id, scope, hops)
            case ast.Attribute(value=ast.Name(id="self")) if (owner := scope.enclosing_class()) is not None:
                return self._follow(owner.bindings.get(f"self.{node.attr}", []), owner, hops)
            case ast.Attribute():
                return self._resolve_attribute(node, scope, hops)
            case ast.Subscript():
                base = self.resolve(node.value, scope, hops - 1)
                is_class = isinstance(base, Defined) and isinstance(base.node, ast.ClassDef)
                return base if isinstance(base, External) or is_class else Defined(node, scope)
            case ast.Await():
                return self.resolve(node.value, scope, hops - 1)
            case _:
                return Defined(node, scope)

    def _resolve_name(self, name: str, scope: Scope, hops: int) -> Resolved:
        each: Scope | None = scope
        while each is not None:
            if name in each.bindings and (each is scope or not isinstance(each.node, ast.ClassDef)):
                return self._follow(each.bindings[name], each, hops)
            each = each.parent
        for source in scope.module.stars:
            module = self.find_module(source, scope.module)
            if module is None and len(scope.module.stars) == 1 and not hasattr(builtins, name):
                return External(f"{source}.{name}")
            if module is not None and name in module.scope.bindings:
                return self._follow(module.scope.bindings[name], module.scope, hops)
        return External(f"builtins.{name}") if hasattr(builtins, name) else None

    def _resolve_attribute(self, node: ast.Attribute, scope: Scope, hops: int) -> Resolved:
        base = self.resolve(node.value, scope, hops - 1)
        if isinstance(base, External):
            return External(f"{base.name}.{node.attr}")
        if base is None:
            return None
        if isinstance(base.node, ast.Module):
            return self._module_member(base.scope.module, node.attr, hops)
        if isinstance(base.node, ast.ClassDef):
            owner = base.scope.module.scopes[id(base.node)]
            return self._follow(owner.bindings.get(node.attr, []), owner, hops)
        return None

    def _module_member(self, module: Module, name: str, hops: int) -> Resolved:
        if name in module.scope.bindings:
            return self._follow(module.scope.bindings[name], module.scope, hops)
        inner = self.find_module(f".{module.name}.{name}", module)
        if inner is not None:
            return Defined(inner.tree, inner.scope)
        return self._resolve_name(name, module.scope, hops - 1) if module.stars else None

    def _follow(self, bindings: list[Binding], scope: Scope, hops: int) -> Resolved:
        """What a name is bound to, if that is one thing only."""
        if len(bindings) == 1:
            return self._follow_one(bindings[0], scope, hops - 1)
        # A name may be imported from its old or its new place. Nothing else is followed in several directions, since
        # the ways would multiply.
        imports = [each for each in bindings if isinstance(each, Imported)]
        outside = [each for each in imports if self.find_module(each.module, scope.module) is None]
        if len(outside) == len(bindings) and len({each.name for each in outside}) == 1:
            return self._resolve_import(outside[0], scope.module, hops)
        return None

    def _follow_one(self, binding: Binding, scope: Scope, hops: int) -> Resolved:
        match binding:
            case Opaque():
                return None
            case Imported():
                return self._resolve_import(binding, scope.module, hops)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return Defined(binding, scope)
            case _:
                return self.resolve(binding, scope, hops)

    def _resolve_import(self, imported: Imported, importer: Module, hops: int) -> Resolved:
        module = self.find_module(imported.module, importer)
        if module is None:
            return External(imported.module if imported.name is None else f"{imported.module}.{imported.name}")
        if imported.name is None:
            return Defined(module.tree, module.scope)
        if hops <= 0:
            return None
        return self._module_member(module, imported.name, hops)

    def qualified_name(self, node: ast.AST, scope: Scope) -> str:
        """The qualified name of something outside of the folder, or of a method of such an object; else nothing."""
        found = self.resolve(node, scope)
        if isinstance(found, External):
            return found.name
        if found is None and isinstance(node, ast.Attribute):
            owner = self.resolve(node.value, scope)
            if isinstance(owner, Defined) and isinstance(owner.node, ast.Call):
                made = self.resolve(owner.node.func, owner.scope)
                return f"{made.name}.{node.attr}" if isinstance(made, External) else ""
            kind = self.type_of(node.value, scope) if owner is None else None
            made = self.resolve(kind[0], kind[1]) if kind is not None else None
            return f"{made.name}.{node.attr}" if isinstance(made, External) else ""
        return ""

    def call_name(self, call: ast.Call, scope: Scope) -> str:
        """The qualified name of what is called."""
        if id(call) not in self._call_names:
            self._call_names[id(call)] = self.qualified_name(call.func, scope)
        return self._call_names[id(call)]

    def type_of(self, node: ast.AST, scope: Scope, hops: int = MAX_HOPS) -> tuple[ast.expr, Scope] | None:
        """The annotation of what an expression stands for: of a parameter, or of a field of an annotated object."""
        if hops <= 0:
            return None
        if isinstance(node, ast.Name):
            each: Scope | None = scope
            while each is not None and node.id not in each.bindings:
                each = each.parent
            bound = each.bindings[node.id] if each is not None else []
            if (
                len(bound) == 1
                and isinstance(bound[0], Opaque)
                and bound[0].annotation is not None
                and each is not None
            ):
                return bound[0].annotation, each
            return None
        if not isinstance(node, ast.Attribute):
            return None
        owner = self.type_of(node.value, scope, hops - 1)
        if owner is None:
            return None
        annotation, at = owner
        if isinstance(annotation, ast.Subscript) and node.attr in ("deps", "context"):
            # `RunContext[Deps].deps` of pydantic-ai, `RunContextWrapper[Context].context` of the OpenAI Agents SDK.
            first = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
            return first, at
        made = self.resolve(annotation, at)
        if isinstance(made, Defined) and isinstance(made.node, ast.ClassDef):
            inner = made.scope.module.scopes[id(made.node)]
            fields = [each for each in made.node.body if isinstance(each, ast.AnnAssign)]
            named = [each for each in fields if isinstance(each.target, ast.Name) and each.target.id == node.attr]
            return (named[0].annotation, inner) if len(named) == 1 else None
        return None

    def assigned(self, name: str, scope: Scope) -> list[tuple[ast.expr, Scope]]:
        """The expressions that a name is bound to in the nearest scope that binds it."""
        each: Scope | None = scope
        while each is not None and name not in each.bindings:
            each = each.parent
        if each is None:
            return []
        return [(bound, each) for bound in each.bindings[name] if isinstance(bound, ast.expr)][:MAX_ASSIGNED]

    def literal(self, node: ast.AST, scope: Scope) -> Any:
        """The value of a constant, a list or a mapping of them; `Ellipsis` if it cannot be told."""
        found = self.resolve(node, scope)
        if not isinstance(found, Defined):
            return ...
        try:
            return ast.literal_eval(found.node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return ...

    def items(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.expr, Scope] | Place]:
        """The items of a list with their scopes, and the place of each part that cannot be told."""
        waiting: list[tuple[ast.AST, Scope]] = [(node, scope)]
        grown: set[str] = set()
        for _ in range(MAX_ITEMS):
            if not waiting:
                return
            node, scope = waiting.pop()
            if isinstance(node, _Item):
                yield node.value, scope
                continue
            if isinstance(node, ast.Name) and node.id not in grown:
                # Once, since a list may be added to itself.
                grown.add(node.id)
                waiting.extend(self._appended(node.id, scope))
            match found := self.resolve(node, scope):
                case Defined(node=ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements)):
                    inner = (
                        each.value if isinstance(each, ast.Starred) else _Item(each) for each in reversed(elements)
                    )
                    waiting.extend((each, found.scope) for each in inner)
                case Defined(node=ast.BinOp(op=ast.Add(), left=left, right=right)):
                    waiting.extend(((right, found.scope), (left, found.scope)))
                case Defined(node=ast.Constant(value=None)):
                    pass
                case _:
                    yield scope.module.place(node)
        yield scope.module.place(node)

    def _appended(self, name: str, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        """What is appended to a list in the scope that binds its name, or added to it."""
        owner: Scope | None = scope
        while owner is not None and name not in owner.bindings:
            owner = owner.parent
        for call, at in scope.module.methods.get((name, "append"), ()):
            if at is owner and call.args:
                yield _Item(call.args[0]), at
        for call, at in scope.module.methods.get((name, "extend"), ()):
            if at is owner and call.args:
                yield call.args[0], at


class _Item(ast.AST):
    """An item of a list, as opposed to a list that is a part of another."""

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The argument of a call, by its name or its position."""
    for each in call.keywords:
        if each.arg == name:
            return each.value
    if position is not None and position < len(call.args) and not isinstance(call.args[position], ast.Starred):
        return call.args[position]
    return None


def hides_arguments(call: ast.Call) -> bool:
    """Whether a call has arguments that only the run of the program decides."""
    return any(each.arg is None for each in call.keywords) or any(isinstance(each, ast.Starred) for each in call.args)


def nodes_in(node: ast.AST) -> Iterator[ast.AST]:
    """A node and everything in it; functions and classes that are defined there are left out."""
    waiting = list(reversed(list(ast.iter_child_nodes(node))))
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting.extend(reversed(list(ast.iter_child_nodes(each))))
