"""Write the generated part of docs/language.md: builtins, modules, methods and refused names, from the code.

Run: python scripts/language_reference.py          (rewrites the file)
     python scripts/language_reference.py --check  (exit 1 if it is out of date)
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sandbox.facades import catalogue
from sandbox.facades.console import Console
from sandbox.guards import builtin_names
from sandbox.guards.readonly import members_of
from sandbox.policy import names

PAGE = Path(__file__).parent.parent / "docs" / "language.md"
START, END = "<!-- generated: begin -->", "<!-- generated: end -->"


def reference() -> str:
    """Return the generated part."""
    modules = {
        **catalogue.shared_modules(),
        **catalogue.program_modules(Console(lambda stream, text: None)),
    }
    lines = [
        "### Builtins",
        "",
        _listed([name for name in builtin_names() if name not in _NEWER]),
        "",
        "### Modules",
        "",
    ]
    members = {
        **{name: members_of(module) for name, module in modules.items()},
        **catalogue.offered_by_inner(),
    }
    for name in sorted(members):
        # Names only a newer Python has would make the page depend on the Python that wrote it.
        offered = [member for member in members[name] if member not in _NEWER]
        lines += [f"**{name}**: {_listed(offered)}", ""]
    lines += ["### Special methods a class may define", "", _listed(sorted(names.DEFINABLE_METHODS)), ""]
    lines += ["### Builtins that are refused", ""]
    lines += [
        f"- `{name}`: {message}; {hint}" for name, (message, hint) in sorted(names.REFUSED_CALLS.items())
    ]
    lines += ["", "### Modules that are refused with a hint", ""]
    by_hint: dict[str, list[str]] = {}
    for name, hint in catalogue.HINTS.items():
        by_hint.setdefault(hint, []).append(name)
    lines += [f"- {_listed(sorted(refused))}: {hint}" for hint, refused in by_hint.items()]
    return "\n".join(lines) + "\n"


_NEWER = frozenset(
    {
        "batched", "sumprod", "fma", "QUOTE_NOTNULL", "QUOTE_STRINGS", "kde", "kde_random", "binomialvariate",
        "QueueShutDown", "override", "TypeAliasType", "PythonFinalizationError", "ReadOnly", "TypeIs",
        "JANUARY", "FEBRUARY",
    }
)  # fmt: skip
"""Names of Python 3.12 and later; they are offered where they exist."""


def _listed(items: tuple[str, ...] | list[str]) -> str:
    return " ".join(f"`{item}`" for item in items)


def page_with(text: str, generated: str) -> str:
    """Return the page with its generated part replaced."""
    pattern = re.escape(START) + r".*?" + re.escape(END)
    return re.sub(pattern, lambda _: f"{START}\n\n{generated}\n{END}", text, flags=re.DOTALL)


def main() -> int:
    """Rewrite or check the page."""
    old = PAGE.read_text(encoding="utf-8")
    new = page_with(old, reference())
    if "--check" in sys.argv[1:]:
        return int(old != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
