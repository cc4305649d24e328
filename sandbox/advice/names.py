"""What a name that nothing binds was meant to be.

Knows: names of a program, of its tools and modules, of other languages. Does not know: exceptions.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox.advice.words import NEAR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sandbox.preflight.spaces import Space


class Surroundings(NamedTuple):
    """What a program finds when it starts."""

    names: Collection[str]
    """Bound names, builtins included."""
    spaces: Mapping[str, Space]
    modules: Collection[str]
    """What can be imported."""
    absent: Mapping[str, str]
    """Modules that cannot, and why."""
    substitutes: Mapping[str, str]
    """For some of what is absent, the call that does it."""


_OTHER_LANGUAGES: Final = {
    "true": "write True",
    "false": "write False",
    "null": "write None",
    "undefined": "write None",
    "nil": "write None",
    "NULL": "write None",
    "nan": 'write float("nan"); JSON has no such number, so it cannot be returned',
    "xrange": "write range(...)",
    "unicode": "write str(...)",
    "raw_input": "nobody is there to answer: put the value into a variable",
    "console": "write print(...)",
    "JSON": "`import json`, then json.loads(...) or json.dumps(...)",
    "Math": "`import math`, or the builtins abs, min, max, round",
    "Promise": "write `await asyncio.gather(...)`, after `import asyncio`",
    "fetch": "programs have no network: only tools reach outside",
    "require": "use `import`, or the tools, which need no import",
    "async_to_sync": "write `await` where you are: a program may use it anywhere",
    "display": "write print(...)",
    "echo": "write print(...)",
    "printf": "write print(...)",
    "println": "write print(...)",
    "puts": "write print(...)",
}
_FROM_MODULES: Final = {
    "defaultdict": "collections",
    "Counter": "collections",
    "deque": "collections",
    "OrderedDict": "collections",
    "namedtuple": "collections",
    "dataclass": "dataclasses",
    "field": "dataclasses",
    "asdict": "dataclasses",
    "timedelta": "datetime",
    "timezone": "datetime",
    "date": "datetime",
    "ZoneInfo": "zoneinfo",
    "Decimal": "decimal",
    "Fraction": "fractions",
    "reduce": "functools",
    "partial": "functools",
    "lru_cache": "functools",
    "cache": "functools",
    "wraps": "functools",
    "chain": "itertools",
    "groupby": "itertools",
    "islice": "itertools",
    "product": "itertools",
    "combinations": "itertools",
    "permutations": "itertools",
    "zip_longest": "itertools",
    "accumulate": "itertools",
    "count": "itertools",
    "itemgetter": "operator",
    "attrgetter": "operator",
    "gather": "asyncio",
    "create_task": "asyncio",
    "as_completed": "asyncio",
    "wait_for": "asyncio",
    "Semaphore": "asyncio",
    "TaskGroup": "asyncio",
    "ceil": "math",
    "floor": "math",
    "sqrt": "math",
    "log": "math",
    "pi": "math",
    "mean": "statistics",
    "median": "statistics",
    "stdev": "statistics",
    "dumps": "json",
    "loads": "json",
    "Enum": "enum",
    "StringIO": "io",
    "uuid4": "uuid",
    "sleep": "asyncio",
    "Any": "typing",
    "Optional": "typing",
    "List": "typing",
    "Dict": "typing",
    "TypedDict": "typing",
    "Literal": "typing",
    "NamedTuple": "typing",
    "heappush": "heapq",
    "heappop": "heapq",
    "bisect_left": "bisect",
    "pprint": "pprint",
    "dedent": "textwrap",
    "suppress": "contextlib",
}
"""Names that programs tend to forget to import, and where they are."""
_DATETIME: Final = " and write datetime.datetime.now(), or add `from datetime import datetime`"
_ALIASES: Final = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib",
    "DataFrame": "pandas",
    "Path": "pathlib",
    "PurePath": "pathlib",
    "urlopen": "urllib.request",
    "Popen": "subprocess",
    "check_output": "subprocess",
    "listdir": "os",
    "getcwd": "os",
    "environ": "os",
    "getenv": "os",
    "AsyncClient": "httpx",
    "ClientSession": "aiohttp",
    "BeautifulSoup": "bs4",
    "ThreadPoolExecutor": "concurrent.futures",
    "ProcessPoolExecutor": "concurrent.futures",
    "NamedTemporaryFile": "tempfile",
}
"""What absent modules are customarily imported as, and what is imported from them."""
_CALLERS: Final = frozenset(
    {"call_tool", "calltool", "invoke", "invoketool", "runtool", "usetool", "executetool", "mcp", "calltools"}
    | {"defaultapi", "toolbox", "toolkit", "mcpclient", "mcptool", "toolclient", "callfunction"}
    | {"functions", "usemcptool", "tool", "api", "client", "agent", "session", "toolcall"}
)
"""Names other systems give to what calls a tool, squashed."""


def unknown_name(
    name: str, bound: frozenset[str], around: Surroundings, *, is_key: bool = False
) -> str | None:
    """Return what to write instead of a name that nothing binds.

    Args:
        name: The name.
        bound: Names the program itself binds.
        around: What it finds when it starts.
        is_key: Whether it stands where the key of a dict is meant.
    """
    if name in _OTHER_LANGUAGES and not any(name in space.members for space in around.spaces.values()):
        return _OTHER_LANGUAGES[name]
    if (label := same_member(name, around)) is not None:
        return f"write `await {label}(...)`"
    if name in around.modules:
        return f"add `import {name}`" + _DATETIME * (name == "datetime")
    if _FROM_MODULES.get(name) in around.modules:
        return f"add `from {_FROM_MODULES[name]} import {name}`"
    if (module := _ALIASES.get(name, name)) in around.absent:
        instead = around.substitutes.get(module)
        return around.absent[module] + (f"; {instead}" if instead else "")
    near = difflib.get_close_matches(name, bound, 1, NEAR)
    near = near or [known for known in around.names if _is_slip_of(name, known)][:1]
    if near:
        return f"did you mean `{near[0]}`?"
    if re.fullmatch(r"[A-Z]\w*(Args|Output)\w*", name):
        return "the classes in the description are not there when a program runs: write a plain dict"
    if labels := _near_members(name, around):
        return f"did you mean `await {' or '.join(f'{label}(...)' for label in labels)}`?"
    if "tools" in around.spaces and _squash(name) in _CALLERS:
        return "call a tool by its own name: `await tools.NAME(key=value)`"
    if is_key:
        return f'write a key in quotes, "{name}"; nothing is kept from earlier runs'
    if re.fullmatch(r"[A-Z]\w*(Error|Exception|Failure)", name) and "ToolCallError" in around.names:
        return "failed calls raise ToolCallError; other errors are Python's own, such as ValueError"
    return f"nothing is kept from earlier runs: give `{name}` a value in this program"


def _is_slip_of(name: str, known: str) -> bool:
    """Whether one letter more or less, or two swapped, make a builtin of a name that begins like it."""
    if name[:2] != known[:2] or name == f"{known}s" or abs(len(name) - len(known)) > 1:
        return False
    if len(name) == len(known):
        different = [index for index in range(len(name)) if name[index] != known[index]]
        return len(different) == 2 and sorted(name) == sorted(known)
    short, long = sorted((name, known), key=len)
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long)))


def same_member(name: str, around: Surroundings) -> str | None:
    """Return how to reach the member that a name is but for its separators."""
    for space in around.spaces.values():
        for member in space.members:
            if member == name or _squash(member) == _squash(name):
                return space.label(member)
    return None


def _near_members(name: str, around: Surroundings) -> list[str]:
    labels: dict[str, str] = {}
    for space in around.spaces.values():
        for member in space.members:
            labels.setdefault(_squash(member), space.label(member))
    near = difflib.get_close_matches(_squash(name), labels, 1, NEAR)
    if not near:
        words = {word for word in re.split(r"[^a-z]+|(?<=[a-z])(?=[A-Z])", name.lower()) if len(word) > 3}
        near = sorted(known for known in labels if known in words)[:2]
    return [labels[known] for known in near]


def _squash(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
