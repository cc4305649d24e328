"""`re`. What its functions are given is made exact in `seals`, where compiled patterns meet it too.

Knows: the module `re`. Does not know: the guards.
"""

from __future__ import annotations

import re

_NAMES = (
    "A ASCII I IGNORECASE L LOCALE M MULTILINE S DOTALL U UNICODE X VERBOSE NOFLAG Match Pattern RegexFlag "
    "compile error escape findall finditer fullmatch match purge search split sub subn"
)


def re_members() -> dict[str, object]:
    """Return what `import re` offers."""
    members: dict[str, object] = {name: getattr(re, name) for name in _NAMES.split() if hasattr(re, name)}
    return {**members, "PatternError": re.error}
