"""Properties of annotated results over generated values and envelopes."""

import jsonschema
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox.values import decode, encode, freeze
from tool_bindings.annotated import (
    DEFAULT_KEEP,
    SCHEMA,
    AnnotatedOutcome,
    AnnotatedToolResult,
    AnnotationError,
    ProjectionPolicy,
    apply_boundary,
    apply_intercept,
    envelope_schema,
    from_mcp,
    project,
    same_json,
    to_mcp,
    wrap_declared,
    wrap_raw,
)

# No deadline, and no complaint about slow generation: the machine may be busy with other tests.
patient = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Every code point, lone surrogates included: strings are data.
text = st.text(st.characters(exclude_categories=()), max_size=6)
atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -0.0, 0.0, 1.0, 2**70, -(10**25)]),
    st.floats(allow_nan=False, allow_infinity=False),
    text,
)
json_values = st.recursive(
    atoms,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
    max_leaves=8,
)

NAMES = ("schema", "status", "isError", "content", "structuredContent", "dataSchema", "correlation")
KNOWN = frozenset({*NAMES, "error", "metadata", "_meta", "raw"})
unknown_members = st.dictionaries(text.filter(lambda name: name not in KNOWN), json_values, max_size=3)
extra = st.dictionaries(text.map(lambda name: f"x-{name}"), json_values, max_size=2)
identifiers = st.dictionaries(
    st.sampled_from(["toolCallId", "parentToolCallId", "dispatchId", "runId", "traceparent"]),
    text.filter(bool),
    max_size=3,
)


@st.composite
def shuffled(draw, members):
    return dict(draw(st.permutations(list(members.items()))))


@st.composite
def blocks(draw):
    kind = draw(st.sampled_from(["text", "image", "audio", "resource_link", "resource", "x-acme/table"]))
    block = {"type": kind}
    if kind == "text":
        block["text"] = draw(text)
    elif kind in ("image", "audio"):
        block.update(data="AAAA", mimeType="a/b")
    elif kind == "resource_link":
        block.update(uri="a:b", name=draw(text))
    elif kind == "resource":
        inner = {"uri": "a:b", draw(st.sampled_from(["text", "blob"])): ""}
        block["resource"] = draw(shuffled({**inner, **draw(extra)}))
    return draw(shuffled({**block, **draw(extra)}))


@st.composite
def envelopes(draw):
    status = draw(st.sampled_from(["succeeded", "failed", "unknown"]))
    members = {"schema": SCHEMA, "status": status, "content": draw(st.lists(blocks(), max_size=3))}
    if status != "unknown" and draw(st.booleans()):
        members["isError"] = status == "failed"
    if status == "failed" and draw(st.booleans()):
        members["error"] = draw(shuffled({"message": draw(text), **draw(extra)}))
    if draw(st.booleans()):
        members["structuredContent"] = draw(json_values)
    if draw(st.booleans()):
        members["dataSchema"] = draw(
            st.one_of(text.filter(bool), shuffled({"name": "n", "version": "1", **draw(extra)}))
        )
    if draw(st.booleans()):
        members["correlation"] = draw(shuffled({**draw(identifiers), **draw(extra)}))
    if draw(st.booleans()):
        members["metadata"] = draw(st.dictionaries(text, json_values, max_size=2))
    if draw(st.booleans()):
        members["_meta"] = draw(st.dictionaries(text, json_values, max_size=2))
    relation = draw(st.sampled_from(["adjacent", "structuredContent", "text", "inline"]))
    raw = {"relation": relation, **draw(extra)}
    if relation == "inline":
        raw["value"] = draw(json_values)
    elif relation == "text":
        members["content"] = [{"type": "text", "text": draw(text)}]
    elif relation == "structuredContent":
        members.setdefault("structuredContent", draw(json_values))
    members["raw"] = draw(shuffled(raw))
    return draw(shuffled({**members, **draw(unknown_members)}))


@patient
@given(envelopes())
def test_reading_and_writing_changes_nothing(envelope):
    assert encode(envelope) == encode(AnnotatedToolResult.from_json(envelope).to_json())
    assert encode(envelope) == encode(AnnotatedToolResult.from_json(freeze(envelope)).to_json())


@patient
@given(envelopes(), json_values)
def test_a_restored_result_has_the_type_it_had(envelope, beside):
    annotation = AnnotatedToolResult.from_json(envelope)
    held = {
        "adjacent": lambda: beside,
        "structuredContent": lambda: envelope["structuredContent"],
        "text": lambda: envelope["content"][0]["text"],
        "inline": lambda: envelope["raw"]["value"],
    }[envelope["raw"]["relation"]]()
    assert encode(held) == encode(annotation.restore(held))


@patient
@given(envelopes(), json_values)
def test_a_sound_record_goes_through_boundary_and_forwarding_unchanged(envelope, beside):
    annotation = AnnotatedToolResult.from_json(envelope)
    result = beside if annotation.relation == "adjacent" else annotation.restore()
    record = {"result": result, "annotation": envelope}
    assert encode(record) == encode(apply_boundary(record, "reject"))
    assert encode(record) == encode(apply_boundary(record, "degrade"))
    assert encode(record) == encode(apply_intercept(record, record))
    assert encode(record) == encode(apply_intercept(record, decode(encode(record["result"]))))
    assert encode(record) == encode(apply_intercept(record, AnnotatedOutcome(record["result"], annotation)))


@patient
@given(envelopes(), json_values, json_values)
def test_a_changed_value_is_unknown_and_the_same_value_is_not(envelope, result, after):
    record = {"result": result, "annotation": {**envelope, "raw": {"relation": "adjacent"}}}
    outcome = apply_intercept(record, after)
    assert encode(after) == encode(outcome["result"])
    if same_json(result, after):
        assert encode(record["annotation"]) == encode(outcome["annotation"])
    else:
        assert "unknown" == outcome["annotation"]["status"]
        assert envelope.get("correlation") or {} == outcome["annotation"].get("correlation", {})


# --- lookalikes ---------------------------------------------------------------------------------------


@st.composite
def lookalikes(draw):
    """Values that look like envelopes, records, MCP results or projections, whole or as JSON text."""
    envelope = draw(envelopes())
    value = draw(
        st.sampled_from(
            [
                envelope,
                {"result": draw(json_values), "annotation": envelope},
                {"result": draw(json_values), "annotation": None},
                {"content": envelope["content"], "structuredContent": 1, "isError": True},
                {"tool_result_annotation": envelope},
                {"_meta": {"dev.codemode/annotation": envelope}, "content": []},
                [envelope],
            ]
        )
    )
    return draw(st.sampled_from([value, encode(value).decode("ascii")]))


def unvouched(value, call):
    """Return the record of a value that nobody vouches for, as the contract describes it."""
    annotation = {"schema": SCHEMA, "status": "unknown", "content": []}
    if isinstance(value, str):
        annotation["content"] = [{"type": "text", "text": value}]
    if call:
        annotation["correlation"] = call
    annotation["raw"] = {"relation": "text" if isinstance(value, str) else "adjacent"}
    return {"result": value, "annotation": annotation}


@patient
@given(st.one_of(lookalikes(), json_values), identifiers)
def test_no_raw_value_is_ever_taken_for_an_envelope(value, call):
    expected = encode(unvouched(value, call))
    assert expected == encode(wrap_raw(value, call))
    declared = wrap_declared({"another": 1}, call=call)
    assert expected == encode(apply_intercept(declared, value))
    assert expected == encode(apply_boundary({"result": value}, "reject", call))
    assert expected == encode(apply_boundary({"result": value, "annotation": None}, "degrade", call))


@patient
@given(lookalikes())
def test_text_that_holds_an_envelope_is_a_malformed_annotation(value):
    if isinstance(value, str):
        kept = apply_boundary({"result": 1, "annotation": value}, "degrade")["annotation"]
        assert ("unknown", value) == (kept["status"], kept["metadata"]["malformedAnnotation"])


@patient
@given(lookalikes(), envelopes())
def test_nothing_inside_an_mcp_answer_becomes_an_envelope(value, envelope):
    answer = {
        "content": [{"type": "text", "text": encode(value).decode("ascii")}],
        "structuredContent": value,
        "_meta": {"dev.codemode/annotation": envelope},
        **{name: item for name, item in envelope.items() if name not in ("isError", "content", "_meta")},
    }
    annotation = from_mcp(answer)["annotation"]
    assert ("succeeded", False, {"relation": "adjacent"}) == (
        annotation["status"],
        annotation["isError"],
        annotation["raw"],
    )
    assert {"correlation", "error", "dataSchema", "metadata"}.isdisjoint(annotation)


# --- the published schema is the oracle -----------------------------------------------------------------

ORACLE = jsonschema.Draft202012Validator(envelope_schema())

odd_blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource_link", "resource", "x", "", 1])},
    optional={
        "text": atoms,
        "data": atoms,
        "mimeType": st.sampled_from(["a/b", "", None]),
        "uri": st.sampled_from(["a:b", "", 1]),
        "name": st.sampled_from(["n", "", 1]),
        "title": st.sampled_from(["t", None]),
        "description": st.sampled_from(["d", []]),
        "size": st.sampled_from([0, 1.5, -1, True, "1", -0.0]),
        "icons": st.sampled_from([[], [{"src": ""}], [{}], {}, [1]]),
        "resource": st.fixed_dictionaries(
            {},
            optional={
                "uri": st.sampled_from(["a:b", ""]),
                "text": st.sampled_from(["", 1]),
                "blob": st.sampled_from(["", None]),
                "mimeType": st.sampled_from(["", 1]),
                "_meta": st.sampled_from([{}, []]),
            },
        ),
        "annotations": st.one_of(
            st.sampled_from([{}, [], None]),
            st.fixed_dictionaries(
                {},
                optional={
                    "audience": st.sampled_from([[], ["user"], [1], "user"]),
                    "priority": st.sampled_from([0, 1, 0.5, 1.5, -1, True, "1", -0.0]),
                    "lastModified": st.sampled_from(["", 1]),
                },
            ),
        ),
        "_meta": st.sampled_from([{}, [], None]),
    },
)
odd_envelopes = st.fixed_dictionaries(
    {},
    optional={
        "schema": st.sampled_from([SCHEMA, SCHEMA, SCHEMA, "codemode.annotated-tool-result/2", 1, None]),
        "status": st.sampled_from(["succeeded", "failed", "unknown", "Succeeded", "", 1, None]),
        "isError": st.sampled_from([True, False, 0, 1, None, "false"]),
        "content": st.one_of(
            st.just([]), st.lists(st.one_of(blocks(), odd_blocks, atoms), max_size=2), atoms
        ),
        "structuredContent": json_values,
        "dataSchema": st.sampled_from(["n", "", None, 1, {}, {"name": ""}, {"name": "n", "version": 1}, []]),
        "correlation": st.one_of(
            st.just({}),
            st.dictionaries(st.sampled_from(["toolCallId", "runId", "x"]), atoms, max_size=2),
            atoms,
        ),
        "error": st.sampled_from(
            [{"message": ""}, {}, {"message": 1}, {"message": "", "code": 1}, None, "e"]
        ),
        "metadata": st.sampled_from([{}, [], None]),
        "_meta": st.sampled_from([{}, [], 1]),
        "raw": st.one_of(
            st.just({"relation": "adjacent"}),
            st.fixed_dictionaries(
                {},
                optional={
                    "relation": st.sampled_from(
                        ["adjacent", "structuredContent", "text", "inline", "Inline", 1, None]
                    ),
                    "value": atoms,
                },
            ),
            atoms,
        ),
    },
)


@st.composite
def nearly_valid(draw):
    """A valid envelope with one member replaced by something odd, or removed."""
    envelope = dict(draw(envelopes()))
    odd = draw(odd_envelopes)
    name = draw(st.sampled_from(sorted(KNOWN)))
    envelope.pop(name, None)
    if name in odd:
        envelope[name] = odd[name]
    return envelope


@settings(patient, max_examples=300)
@given(
    st.one_of(odd_envelopes, nearly_valid(), st.fixed_dictionaries({}).map(lambda _empty: {}), json_values)
)
@example({"schema": SCHEMA, "status": "unknown", "content": [], "raw": {"relation": "inline"}})
def test_the_published_schema_and_the_code_accept_the_same_envelopes(value):
    problem = None
    try:
        AnnotatedToolResult.from_json(value)
    except AnnotationError as error:
        problem = error
    assert ORACLE.is_valid(value) == (problem is None)
    assert problem is None or points_into(value, problem.pointer)


def points_into(value, pointer):
    """Tell whether a pointer leads to a place in the value, or to where a member is missing."""
    *path, _last = pointer.split("/")[1:] or [""]
    for name in path:
        value = value[int(name)] if isinstance(value, list) else value[name]
    return pointer == "" or isinstance(value, (dict, list))


# --- what leaves the process --------------------------------------------------------------------------


@patient
@given(envelopes(), json_values)
def test_a_default_projection_holds_no_payload(envelope, result):
    record = {"result": result, "annotation": {**envelope, "raw": {"relation": "adjacent"}}}
    shown = project(record)["event"]["tool_result_annotation"]
    assert set(shown) <= {"schema", "status", "isError", "dataSchema", "correlation", "error"}
    assert set(shown.get("error", {})) <= {"code"}
    for name in set(shown) - {"error"}:
        assert encode(envelope[name]) == encode(shown[name])


@patient
@given(envelopes(), st.lists(st.sampled_from(sorted(KNOWN)), unique=True))
def test_a_projection_shows_the_allowed_members_and_no_other(envelope, keep):
    annotation = {**envelope, "raw": {"relation": "adjacent"}}
    shown = project({"result": 1, "annotation": annotation}, ProjectionPolicy(keep=keep))["event"]
    assert encode({name: item for name, item in annotation.items() if name in keep}) == encode(
        shown["tool_result_annotation"]
    )


@patient
@given(envelopes(), json_values)
def test_an_mcp_result_keeps_every_member_of_an_envelope(envelope, result):
    annotation = {**envelope, "raw": {"relation": "adjacent"}}
    written = to_mcp({"result": result, "annotation": annotation})
    meta = dict(written.pop("_meta"))
    rest = meta.pop("dev.codemode/annotation")
    assert "complete" == written.pop("resultType")
    if "dev.codemode/annotation" not in envelope.get("_meta", {}):
        assert same_json(envelope.get("_meta", {}), meta)
    assert {"succeeded": False, "failed": True}.get(envelope["status"]) == written.pop("isError", None)
    kept = {name: item for name, item in annotation.items() if name not in ("_meta", "isError")}
    assert same_json(kept, {**rest, **written})


def test_the_default_projection_is_what_the_docs_say():
    assert ("schema", "status", "isError", "dataSchema", "correlation", "error.code") == DEFAULT_KEEP
