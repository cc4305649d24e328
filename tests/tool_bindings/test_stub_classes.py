"""Names of classes in stub text: one for each distinct body, fit for all who use it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tool_bindings.stub_classes import Classes


def names_of(bases, taken=()):
    """Declare classes with one body, and return the name they share."""
    classes = Classes(taken)
    marks = [classes.declare(mark, f"{mark}:body") for _, mark in map(classes.claim, bases)]
    (mark,) = set(marks)
    declared, used = classes.resolve([mark])
    assert f"{used}:body" == declared
    return used


def test_one_user_gives_the_name():
    assert "ReadOutput" == names_of(["ReadOutput"])
    assert "T2" == names_of(["T"], taken=["T"])


def test_several_users_give_what_is_common_to_their_names():
    assert "Entities" == names_of(["GraphReadOutputEntities", "GraphWriteArgsEntities"])
    assert "FsOutput" == names_of(["FsReadOutput", "FsWriteOutput"])
    assert "Time" == names_of(["TimeNowOutput", "TimeConvertOutputSource"])
    assert "AOutput" == names_of(["SomethingOutputItem", "AOutput"])


def test_a_common_name_that_is_taken_gets_a_number():
    assert "Any2" == names_of(["AnyOneOutputX", "AnyTwoOutputY"], taken=["Any"])
    assert "None2" == names_of(["NoneOneOutputX", "NoneTwoOutputY"])


def test_bodies_that_differ_in_the_classes_they_name_are_different():
    classes = Classes(())
    (_, inner_1), (_, inner_2), (_, outer_1), (_, outer_2) = map(classes.claim, "ABCD")
    for mark, body in ((inner_1, "1"), (inner_2, "2")):
        classes.declare(mark, f"{mark}:{body}")
    first = classes.declare(outer_1, f"{outer_1}:{inner_1}")
    second = classes.declare(outer_2, f"{outer_2}:{inner_2}")
    assert ["A:1", "B:2", "C:A", "D:B", "C D"] == classes.resolve([f"{first} {second}"])


@given(st.lists(st.from_regex(r"[A-Z][A-Za-z]{0,8}(Args|Output)[A-Za-z]{0,8}", fullmatch=True), min_size=1))
def test_every_name_is_an_identifier_of_its_own(bases):
    classes = Classes(("Any", "Tools"))
    marks = []
    for number, base in enumerate(bases):
        _, mark = classes.claim(base)
        # Every second one has the body of the one before.
        marks.append(classes.declare(mark, f"{mark}:{number // 2}"))
    *declared, used = classes.resolve([" ".join(marks)])
    names = [text.partition(":")[0] for text in declared]
    assert len(names) == len(set(names)) == (len(bases) + 1) // 2
    assert all(name.isidentifier() for name in names)
    assert set(names) == set(used.split())
    assert not {"Any", "Tools"} & set(names)
