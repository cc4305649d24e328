"""`json`.

Knows: that module. Does not know: the value contract of results, which is stricter.
"""

from __future__ import annotations

import json


def json_members() -> dict[str, object]:
    """Return what `import json` offers."""
    return {
        name: getattr(json, name)
        for name in ("JSONDecodeError", "JSONDecoder", "JSONEncoder", "dump", "dumps", "load", "loads")
    }
