"""Which tools a command works with: the built-in ones, those of `--tools`, narrowed by `--allow`.

Knows: how a SPEC is found and what it must give. Does not know: what tools do.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from codemode.cli.status import CommandError
from tool_bindings import ToolRegistry
from tool_bindings.errors import DefinitionError
from tool_bindings.tools.catalogue import first_party_tools
from tool_bindings.tools.errors import FsError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from tool_bindings.spill import SpillStore

_NONE: Final = "none"


class Toolset(NamedTuple):
    """The tools of one command.

    Attributes:
        registry: All of them.
        allowed: Names a program may use, sorted; all of the registry's unless `--allow` says otherwise.
        spill: Where texts too long to show are kept, for a command that records its session.
    """

    registry: ToolRegistry
    allowed: list[str]
    spill: SpillStore | None = None


def load_toolset(options: argparse.Namespace, *, protected: Iterable[Path] = ()) -> Toolset:
    """Build the registry the options ask for.

    Args:
        options: The parsed command line.
        protected: Files the built-in tools must not change, beside those of `--tools`.

    Raises:
        CommandError: A SPEC, a name or the root is wrong, or two tools have the same name.
    """
    root = Path(options.root)
    if not root.is_dir():
        what = "is not a directory" if root.exists() else "does not exist"
        raise CommandError(f"--root {options.root!r} {what}")
    specs = [spec for spec in options.tools if spec != _NONE]
    files = list(protected)
    registries = [_load(spec, files) for spec in specs]
    registry = registries[0] if registries else ToolRegistry()
    for spec, other in zip(specs[1:], registries[1:], strict=True):
        if other is not registry:
            if any(other.listeners.values()):
                # Taking its tools without its policies would quietly lift what they forbid.
                raise CommandError(
                    f"--tools {spec!r} has policies of its own; only the first --tools may, so put it first"
                )
            _add(registry, other.definitions(), f"--tools {spec!r}")
    spill = None
    if getattr(options, "events", None) is not None:
        # Imported only where something is recorded: a short run is mostly imports.
        from codemode.cli.spilling import keep_searches, spill_store  # noqa: PLC0415

        spill = spill_store()
    if _NONE not in options.tools:
        try:
            built_in = first_party_tools(root, protected=files, spill=spill)
        except FsError as error:
            raise CommandError(f"--root {options.root!r} cannot be used: {error}") from error
        _add(registry, built_in, "the built-in tools (leave them out with `--tools none`)")
        if spill is not None:
            keep_searches(registry, built_in, spill)
    names = sorted(registry.names())
    # What the servers of --mcp offer is known once they are connected; see `servers`.
    waits = bool(getattr(options, "mcp", ()))
    for name in getattr(options, "allow", ()):
        if name not in names and not waits:
            raise CommandError(f"--allow {name!r}: {unknown_tool(name, names)}")
    allowed = getattr(options, "allow", ())
    return Toolset(registry, sorted(set(allowed)) if allowed else names, spill)


def unknown_tool(name: str, names: list[str]) -> str:
    """Return what to say about a name that is no tool's: the nearest ones, or all there are."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"there is no such tool; did you mean {' or '.join(map(repr, near))}?"
    return f"there is no such tool; the tools are: {', '.join(names) or 'none'}"


def _add(registry: ToolRegistry, definitions: Iterable[Any], origin: str) -> None:
    for definition in definitions:
        try:
            registry.register(definition)
        except DefinitionError as error:
            raise CommandError(f"tool {definition.name!r} of {origin} cannot be added: {error}") from error


def _load(spec: str, files: list[Path]) -> ToolRegistry:
    place, colon, attribute = spec.rpartition(":")
    if not colon or not place or not attribute:
        raise CommandError(
            f"--tools {spec!r} must be module:attribute, path/to/file.py:attribute, or `none`;"
            f" write --tools {_example(place or spec)}"
        )
    with _blamed_on(spec, "importing it"):
        if place.endswith(".py") or os.sep in place:
            module = _import_file(spec, Path(place))
        else:
            module = _import_module(spec, place)
    if module.__file__ is not None:
        files.append(Path(module.__file__))
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise CommandError(
                f"--tools {spec!r}: {place!r} has no attribute {attribute!r}; {_instead(place, module)}"
            )
        value = getattr(value, part)
    if not isinstance(value, ToolRegistry) and callable(value):
        if inspect.iscoroutinefunction(value):
            raise CommandError(f"--tools {spec!r}: the function must be a plain `def`, not async")
        with _blamed_on(spec, f"calling {attribute}()", value):
            value = value()
    if not isinstance(value, ToolRegistry):
        raise CommandError(
            f"--tools {spec!r} gives {_kind(value)}; it must be a ToolRegistry or a function that returns one"
        )
    return value


def _example(place: str) -> str:
    return f"{place}:registry" if place.strip(":") else "my_tools.py:registry"


def _instead(place: str, module: ModuleType) -> str:
    from codemode.cli.spec_errors import registries_of  # noqa: PLC0415  # only where a SPEC is wrong

    names = registries_of(module)
    if not names:
        return "make one there: `registry = ToolRegistry()`"
    return "write --tools " + " or ".join(f"{place}:{name}" for name in names)


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"an object of type {type(value).__name__}"


def _import_file(spec: str, path: Path) -> ModuleType:
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise CommandError(f"--tools {spec!r}: {str(path)!r} {what}")
    path = path.absolute()
    # As when Python runs a file: what lies beside it can be imported.
    _add_to_path(path.parent)
    name = f"codemode_tools_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise CommandError(f"--tools {spec!r}: {str(path)!r} is not a Python file")
    if name in sys.modules and sys.modules[name].__file__ == str(path):
        return sys.modules[name]
    module = importlib.util.module_from_spec(found)
    # Dataclasses and pickling look their module up by name while it is being executed.
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def _import_module(spec: str, name: str) -> ModuleType:
    _add_to_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only the module itself, or a package it lies in: a missing import inside it is its own error.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise CommandError(
                f"--tools {spec!r}: there is no module {error.name!r} here or installed;"
                " a file is named by its path, such as path/to/my_tools.py:registry"
            ) from error
        raise


def _add_to_path(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


@contextlib.contextmanager
def _blamed_on(spec: str, doing: str, function: object = None) -> Iterator[None]:
    """Turn whatever foreign code raises, SystemExit included, into one line that names the spec."""
    try:
        yield
    except (CommandError, KeyboardInterrupt):
        raise
    except BaseException as error:
        from codemode.cli.spec_errors import raised_text  # noqa: PLC0415  # only where a SPEC is wrong

        raise CommandError(f"--tools {spec!r}: {doing} raised {raised_text(error, function)}") from error
