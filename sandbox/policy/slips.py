"""Hints for texts that are not Python: what models typically meant.

Knows: Python's messages and the offending line. Does not know: the policy.
"""

from __future__ import annotations

import re

SURROGATE = "write the character itself, or an escape such as '\\U0001F600' inside a string"
TOO_DEEP = "split it: name intermediate values, build data in a loop, or load it from a tool"

_FENCE = re.compile(r"^\s*(```|~~~)")
_TYPOGRAPHIC = "“”‘’„«»"
_SPACES = re.compile(r"[\u00a0\u2000-\u200f\u2028\u2029\u202f\u2060\u3000\ufeff]")

_STRING = re.compile(r"""(["'])(?:\\.|(?!\1).)*\1""")
_COLON_ARGUMENT = r"\w\(\s*[A-Za-z_]\w*\s*:\s*[^:)]"

_BY_MESSAGE: tuple[tuple[str, str], ...] = (
    ("'await' outside", "write 'async def' instead of 'def' for the function that awaits"),
    ("asynchronous comprehension outside", "write 'async def' instead of 'def' for the function around it"),
    ("'async for' outside", "write 'async def' instead of 'def' for the function around it"),
    ("'async with' outside", "write 'async def' instead of 'def' for the function around it"),
    ("'return' with value in async generator", "yield the value, or collect it in a list"),
    (
        "unterminated string literal",
        'close the quote on the same line; write \\n for a line break, or use """triple quotes"""',
    ),
    ("unterminated triple-quoted", "close the string with the same three quotes"),
    (
        "unterminated f-string",
        "inside {} use the other kind of quote, or compute the value in a variable first",
    ),
    (
        "f-string: expecting '}'",
        "close every { with }; inside {} use the other kind of quote, or set a variable first",
    ),
    (
        "f-string: unmatched",
        "inside {} use the other kind of quote, or compute the value in a variable first",
    ),
    (
        "f-string expression part cannot include a backslash",
        "compute the value in a variable before the f-string",
    ),
    ("f-string: single '}'", "write }} for a literal brace"),
    ("unexpected indent", "start the program's own statements in the first column"),
    ("expected an indented block", "indent what belongs to that line by four spaces more than it"),
    ("unindent does not match", "indent the line by as many spaces as the line it belongs with"),
    ("positional argument follows keyword", "give every argument its name: name=value"),
    ("inconsistent use of tabs", "indent with spaces only"),
    ("Exceeds the limit", "write it as a power or product, or build it with int() from parts"),
    ("Missing parentheses in call to 'print'", "write print(...)"),
    ("null bytes", "remove the NUL character; inside a string write '\\0'"),
    ("import * only allowed", "import the names one by one"),
    ("no binding for nonlocal", "use 'global' for a variable of the program's own level"),
)


def hint_for(message: str, line: str, source: str) -> str | None:
    """Return what to write instead, for Python's `message` about `line` of `source`."""
    if _FENCE.match(line) or _FENCE.match(source):
        return "send the program alone, without the ``` fences around it"
    if "invalid character" in message or "invalid non-printable" in message:
        if any(quote in line for quote in _TYPOGRAPHIC):
            return "use the plain quotes ' and \""
        if _SPACES.search(line):
            return "replace the invisible character by an ordinary space"
        return "use the plain ASCII character outside of strings"
    if "'await' outside" in message and "lambda" in line:
        return "a lambda cannot await: write a loop, or an 'async def'"
    if "unterminated string" in message and re.search(r"'[^'\"]*\w'\w", line):
        return "the apostrophe ends the string: put the text in double quotes"
    for start, hint in _BY_MESSAGE:
        if start in message:
            return hint
    known = _foreign(line)
    if known is None and message.startswith(("invalid syntax", "expected ':'")):
        return _unreadable(line)
    return known


def _unreadable(line: str) -> str | None:
    """Recognise what Python can only call invalid."""
    stripped = line.strip()
    if re.match(r"(async def|def|if|for|while|else|class)\b.*\{$", stripped):
        return "a block begins with ':' and is indented; it has no braces"
    if any(re.match(r"\w", stripped[text.end() :]) for text in _STRING.finditer(stripped)):
        return "a quote inside the text ends it: put the other kind of quote around the text"
    if re.search(r"[-+*/%=&|]$", stripped):
        return "the line ends in the middle: put brackets around an expression of several lines"
    if not re.search(r"^(async\s+def|def|class)\b|\blambda\b", stripped) and re.search(
        _COLON_ARGUMENT, stripped
    ):
        return "name arguments with '=': f(name=value); a dict has its keys in quotes, {\"name\": value}"
    return None


def _foreign(line: str) -> str | None:
    """Recognise the syntax of other languages."""
    stripped = _STRING.sub('""', line).strip()
    if "&&" in stripped or "||" in stripped:
        return "write 'and' / 'or'"
    if re.fullmatch(r"</?[a-z_]+>", stripped):
        return f"send the program alone, without {stripped}"
    if "===" in stripped or "!==" in stripped:
        return "compare with == or !="
    if re.match(r"switch\b", stripped):
        return "write `match x:`, or if and elif"
    if stripped.startswith("await for "):
        return "write `for x in await ...:`"
    if re.match(r"(const|let|var)\s", stripped):
        return "assign without a keyword: name = value"
    if re.match(r"function\b", stripped):
        return "define functions with 'def' or 'async def'"
    if re.match(r"(else\s+if|elseif)\b", stripped):
        return "write 'elif'"
    if "=>" in stripped:
        return "write 'lambda x: ...' or a def"
    if re.search(r"(\+\+|--)\s*;?$", stripped):
        return "write 'name += 1'"
    if "?." in stripped or "??" in stripped:
        return 'test for None: `x["key"] if x is not None else None`, or `x.get("key")`'
    if re.search(r"\S\s*\?\s*\S.*:", stripped):
        return "write `a if condition else b`"
    if re.search(r"\b(if|while)\b[^=<>!:]*[^=<>!:]=[^=]", stripped):
        return "compare with =="
    if stripped.startswith(("print ", "exec ")):
        return "call it with parentheses"
    return None
