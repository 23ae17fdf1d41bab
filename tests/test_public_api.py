"""The public surface: every public module says what it offers, and everything it offers is explained."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import talkfold
from talkfold.store import SessionStore

SOURCE = Path(talkfold.__file__).parent

# Nothing to import from: one constant, and a process of the demo.
_NOT_LIBRARY = {"talkfold._version", "talkfold.cli.demo.writer"}

MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(talkfold.__path__, "talkfold.")
    if name not in _NOT_LIBRARY and not any(part.startswith("_") for part in name.split(".")[1:])
)

# The inside of one store: what its operations do is said once, by the protocol.
EXPLAINED = [name for name in MODULES if not name.startswith("talkfold.store.sqlite.")] + [
    "talkfold.store.sqlite.doctor"
]

each_module = pytest.mark.parametrize("name", ["talkfold", *MODULES])


def _defined(module: ModuleType) -> set[str]:
    """Public names that the module itself binds at its top: functions, classes, constants, type aliases."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return {name for name in found if not name.startswith("_")}


def test_there_is_something_to_walk() -> None:
    assert {"talkfold.fold", "talkfold.codec", "talkfold.store", "talkfold.protocols.native"} <= set(MODULES)


@each_module
def test_all_is_a_tuple_of_names_that_are_there(name: str) -> None:
    module = importlib.import_module(name)
    assert isinstance(module.__all__, tuple)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [each for each in module.__all__ if not hasattr(module, each)] == []


@each_module
def test_all_is_sorted_as_ruff_sorts_it(name: str) -> None:
    """Constants, then classes, then the rest; natural order in each."""

    def place(each: str) -> tuple[int, list[object]]:
        kind = 0 if each.isupper() else 1 if each[:1].isupper() else 2
        return kind, [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", each)]

    offered = importlib.import_module(name).__all__
    assert list(offered) == sorted(offered, key=place)


@each_module
def test_all_is_complete(name: str) -> None:
    module = importlib.import_module(name)
    type_variables = {each for each in _defined(module) if type(getattr(module, each)).__name__ == "TypeVar"}
    assert _defined(module) - type_variables - set(module.__all__) == set(), "make it private, or offer it"


@pytest.mark.parametrize("name", EXPLAINED)
def test_everything_offered_is_explained(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, "the module says what it is for"
    for offered in module.__all__:
        value = getattr(module, offered)
        if not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        if value.__module__ == module.__name__:
            assert inspect.getdoc(value), f"{offered} has no docstring"


@pytest.mark.parametrize("name", EXPLAINED)
def test_public_methods_are_explained(name: str) -> None:
    module = importlib.import_module(name)
    for offered in module.__all__:
        kind = getattr(module, offered)
        if inspect.isclass(kind) and kind.__module__ == module.__name__:
            for method, value in vars(kind).items():
                if not method.startswith(("_", "test_")) and (inspect.isfunction(value) or isinstance(value, property)):
                    said = inspect.getdoc(getattr(kind, method)) or inspect.getdoc(getattr(SessionStore, method, None))
                    assert said, f"{offered}.{method} has no docstring"


def test_errors_are_complete() -> None:
    """Every error has a code of its own and a way on, and is offered at the top."""
    from talkfold import errors

    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.TalkfoldError)]
    leaves = [kind for kind in kinds if kind is not errors.TalkfoldError]
    assert len({kind.code for kind in leaves}) == len(leaves) > 20
    for kind in leaves:
        assert kind.fault in {"caller", "data", "environment"}
        assert kind.exit_code in {2, 3, 4, 5, 6, 70}
        assert 400 <= kind.http_status < 600
        assert kind.__name__ in talkfold.__all__


def test_no_file_and_no_class_has_a_name_that_says_nothing() -> None:
    words = ("util", "utils", "helper", "helpers", "common", "misc", "base", "manager", "service", "services")
    vague = re.compile(rf"(?:^|_)(?:{'|'.join(words)})$|(?:{'|'.join(word.title() for word in words)})$")
    for path in SOURCE.rglob("*.py"):
        assert not vague.search(path.stem), path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                assert not vague.search(node.name), f"{path}: {node.name}"


def test_importing_talkfold_loads_its_two_libraries_and_no_io() -> None:
    code = "import sys; before = set(sys.modules); import talkfold; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    tops = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert tops <= {"talkfold", "msgspec", "transitions", "six", "typing_extensions"}
    assert not {"asyncio", "sqlite3", "socket", "ssl", "subprocess"} & set(loaded)
