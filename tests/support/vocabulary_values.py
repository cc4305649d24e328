"""Generated schemas of the vocabulary, and values that sometimes fit."""

from __future__ import annotations

from hypothesis import strategies as st

names = st.sampled_from(["a", "b", "__proto__", ""])
scalars = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "number", "integer", "boolean", "null"])}),
    st.builds(lambda items: {"type": "string", "enum": items}, st.lists(st.sampled_from("abc"), min_size=1)),
    st.builds(
        lambda items: {"type": "number", "enum": items},
        st.lists(st.sampled_from([0, 1, 1.0, 1.5]), min_size=1),
    ),
    st.builds(lambda item: {"type": "integer", "const": item}, st.sampled_from([0, 1, 2.0, 2**60])),
    st.builds(lambda item: {"type": "boolean", "const": item}, st.booleans()),
    st.just({}),
)


def object_schema(properties, required, additional):
    schema = {"type": "object", "properties": properties}
    present = [name for name in required if name in properties]
    if present:
        schema["required"] = present
    if additional is not None:
        schema["additionalProperties"] = additional
    return schema


schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.just({"type": "array"}),
        st.builds(
            object_schema,
            st.dictionaries(names, inner, max_size=3),
            st.lists(names, unique=True, max_size=3),
            st.sampled_from([None, True, False]) | inner,
        ),
        st.builds(lambda arms: {"oneOf": arms}, st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=8,
)
leaves = st.sampled_from([None, True, False, 0, 1, 1.0, 1.5, 2, 2.0, -0.0, 2**60, "a", "b", "x", ""])
some_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
