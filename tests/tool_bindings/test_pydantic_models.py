"""pydantic models as annotations; skipped where pydantic is not installed."""

from __future__ import annotations

import datetime as dt
from typing import Literal

import pytest

from tool_bindings import DefinitionError, render_stubs

pydantic = pytest.importorskip("pydantic")


class Address(pydantic.BaseModel):
    street: str
    number: int | None = None


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(description="full name")
    born: dt.date
    kind: Literal["a", "b"] = "a"
    addresses: list[Address] = pydantic.Field(default_factory=list)
    tags: dict[str, int] = pydantic.Field(default_factory=dict)

    @pydantic.computed_field
    @property
    def initial(self) -> str:
        return self.name[0]

    @pydantic.field_validator("name")
    @classmethod
    def not_blank(cls, name: str) -> str:
        if not name.strip():
            raise ValueError("a name must not be blank")
        return name


class Limited(pydantic.BaseModel):
    count: int = pydantic.Field(ge=1)


class Tree(pydantic.BaseModel):
    kids: list[Tree]


@pytest.fixture
def seen(registry):
    got = []

    @registry.tool
    async def keep(person: Person) -> Person:
        got.append(person)
        return person

    return got


async def test_a_model_arrives_as_an_instance_and_leaves_as_json(registry, seen):
    sent = {
        "name": "Ann",
        "born": "2000-01-02",
        "addresses": [{"street": "Main", "number": 1}],
        "tags": {"x": 1},
    }
    result = await registry.dispatch("keep", {"person": sent})
    assert Person is type(seen[0])
    assert dt.date(2000, 1, 2) == seen[0].born
    assert {**sent, "kind": "a"} == result.value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 1}, '"person.name" must be a string (got 1)'),
        ({"extra": 1}, '"person.extra" is not a declared property'),
        ({"kind": "c"}, '"person.kind" must be one of ["a", "b"]'),
        ({"addresses": [{"street": 1}]}, '"person.addresses[0].street" must be a string'),
        ({"born": "soon"}, "at born: "),
        ({"name": " "}, "a name must not be blank"),
    ],
)
async def test_faults_are_named_in_the_tools_own_terms(registry, seen, change, message):
    """Field report F036: no library's name, no link to its documentation."""
    result = await registry.dispatch("keep", {"person": {"name": "Ann", "born": "2000-01-02", **change}})
    assert "INVALID_ARGS" == result.error.info.code
    assert message in result.error.message
    assert "pydantic" not in result.error.message
    assert [] == seen


def test_stubs_show_the_fields(registry, seen):
    text = render_stubs(registry.definitions())
    assert "class Addresses(TypedDict):\n  street: str\n  number: NotRequired[int | None]\n" in text
    assert "  # full name\n  name: str\n" in text
    assert "  tags: NotRequired[dict[str, int]]\n" in text


async def test_constraints_are_checked_too(registry):
    @registry.tool
    async def limited(value: Limited) -> int:
        return value.count

    assert 1 == (await registry.dispatch("limited", {"value": {"count": 1}})).value
    result = await registry.dispatch("limited", {"value": {"count": 0}})
    assert '"value.count" must be at least 1' in result.error.message


def test_a_model_that_contains_itself_is_refused(registry):
    with pytest.raises(DefinitionError, match="Tree contains itself; use JsonValue"):

        @registry.tool
        async def grow(tree: Tree) -> None: ...
