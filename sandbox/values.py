"""The value contract: lossless JSON values, their frozen form, and their text.

Knows: nothing itself; it names what `frozen`, `copying`, `numerals` and `json_text` offer. It is the one
leaf that `sandbox` and `tool_bindings` share, and the worker loads it, so all of them need nothing but
the standard library.
Does not know: schemas, tools, frames, or who sends a value to whom.
"""

from sandbox.collector import MANY_CONTAINERS, uncollected
from sandbox.copying import (
    GIVE_UP,
    NotJsonError,
    are_finite,
    child_path,
    freeze,
    freeze_fast,
    freeze_many,
    from_program,
    snapshot,
    snapshot_frozen,
    thaw,
)
from sandbox.freezing import freeze_own
from sandbox.frozen import (
    FrozenDict,
    FrozenList,
    JsonValue,
    frozen_dict,
    frozen_dicts,
    frozen_list,
    set_field,
)
from sandbox.json_text import decode, encode, encode_string, json_size, string_size
from sandbox.numerals import number_text

__all__ = [
    "GIVE_UP",
    "MANY_CONTAINERS",
    "FrozenDict",
    "FrozenList",
    "JsonValue",
    "NotJsonError",
    "are_finite",
    "child_path",
    "decode",
    "encode",
    "encode_string",
    "freeze",
    "freeze_fast",
    "freeze_many",
    "freeze_own",
    "from_program",
    "frozen_dict",
    "frozen_dicts",
    "frozen_list",
    "json_size",
    "number_text",
    "set_field",
    "snapshot",
    "snapshot_frozen",
    "string_size",
    "thaw",
    "uncollected",
]
