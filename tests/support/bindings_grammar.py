"""Random small programs that bind, shadow, delete and read names in every way the language has.

Most of them fail somewhere. What they are for: whatever runs to its end when nothing looks ahead must not be
refused by what looks ahead.
"""

from __future__ import annotations

import random

NAMES = ("a", "b", "f", "tools", "codemode", "print", "asyncio")
CALLS = (
    "tools.add(a=1, b=2)",
    "tools.add(a=1, b='x')",
    "tools.add(a=1)",
    "tools.add({'a': 1, 'b': 2})",
    "tools.add({'a': 1, 'b': 2}, **{})",
    "tools.add(**{'a': 1, 'b': 2})",
    "tools.nope(a=1)",
    "tools['add'](a=1, b=2)",
    "codemode.search('add')",
    "codemode.batch([tools.add(a=1)])",
    "f()",
)
SIMPLE = (
    "{n} = {e}",
    "{n}: {m} = {e}",
    "{n} += 1",
    "{n}, *{m} = [1, 2]",
    "({n} := {e})",
    "del {n}",
    "import asyncio",
    "import json as {n}",
    "print({e})",
    "{e}",
    "await {c}",
    "{n} = await {c}",
    "{n} = {c}",
    "{n} = await asyncio.gather({c}, {c}, return_exceptions=True)",
    "{n} = [{m} for {m} in range(2)]",
    "{n} = (lambda {m}: {m})(1)",
    "{n} = {e} if {m_or_1} else {e}",
    "{n} = True or {e}",
    "{n} = 2 < 1 < {e}",
    "assert True, {e}",
    "pass",
)
BLOCKS = (
    "if {m_or_1}:",
    "if False:",
    "while False:",
    "for {n} in range(2):",
    "for {n} in []:",
    "def f({n}=1, *, {m}_=2):",
    "async def f():",
    "class {n}:",
    "class f:",
)
HANDLED = ("except Exception:", "except NameError as {n}:", "finally:")
PATTERNS = ("[{n}, *{m}]", "{{**{n}}}", "int() as {n}", "{n}")
EXPRESSIONS = (
    "1",
    "{n}",
    "[{n}]",
    "f'{{{n}}}'",
    "{n} is None",
    "str({n})",
    "type({n})",
    "(lambda: {n})",
    "'x'",
)
ENDS = ("return 1", "raise SystemExit", "exit()", "{n}")


def program(seed: int) -> str:
    """Return the program of a seed."""
    chance = random.Random(seed)  # a test's input, not a secret
    lines = [line for _ in range(chance.randint(2, 6)) for line in _statement(chance, 0)]
    return "\n".join(lines)


def _statement(chance: random.Random, depth: int) -> list[str]:
    indent = "    " * depth
    kind = chance.random()
    if depth < 2 and kind < 0.25:  # deep nesting adds nothing
        return [indent + _fill(chance, chance.choice(BLOCKS)), *_body(chance, depth)]
    if depth < 2 and kind < 0.35:
        handler = indent + _fill(chance, chance.choice(HANDLED))
        return [f"{indent}try:", *_body(chance, depth), handler, *_body(chance, depth)]
    if depth < 2 and kind < 0.40:
        head = f"{indent}match {_fill(chance, '{e}')}:"
        case = f"{indent}    case {_fill(chance, chance.choice(PATTERNS))}:"
        return [head, case, *_body(chance, depth + 1)]
    if depth < 2 and kind < 0.44:
        use = f"{indent}with contextlib.suppress(Exception) as {chance.choice(NAMES)}:"
        return [f"{indent}import contextlib", use, *_body(chance, depth)]
    if kind < 0.48:
        return [indent + _fill(chance, chance.choice(ENDS))]
    return [indent + _fill(chance, chance.choice(SIMPLE))]


def _body(chance: random.Random, depth: int) -> list[str]:
    return [line for _ in range(chance.randint(1, 2)) for line in _statement(chance, depth + 1)]


def _fill(chance: random.Random, form: str) -> str:
    name = chance.choice(NAMES)
    expression = chance.choice(EXPRESSIONS).format(n=chance.choice(NAMES))
    return form.format(
        n=name,
        m=chance.choice(("a", "b", "f")),
        m_or_1=chance.choice(("1", "0", "a", "True")),
        e=expression,
        c=chance.choice(CALLS),
    )
