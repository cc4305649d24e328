"""Where a program comes from, and each way of it not being one."""

from __future__ import annotations

import io
import os
import sys

import pytest

from codemode.cli.program import read_program
from codemode.cli.status import CommandError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(file=None, code=None, max_bytes=1000):
    return read_program(file, code, max_bytes=max_bytes)


def test_code_comes_as_it_is():
    assert "return 1\n" == read(code="return 1\n")


def test_a_file_is_read_as_utf_8_with_or_without_a_byte_order_mark(folder):
    (folder / "a.py").write_bytes("return 'é'".encode())
    (folder / "b.py").write_bytes(b"\xef\xbb\xbfreturn 1")
    assert "return 'é'" == read("a.py")
    assert "return 1" == read("b.py")


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"return 2")))
    assert "return 2" == read("-")


def test_a_pipe_given_as_a_file_is_read(folder):
    reader, writer = os.pipe()
    os.write(writer, b"return 3")
    os.close(writer)
    assert "return 3" == read(f"/dev/fd/{reader}")
    os.close(reader)


@pytest.mark.parametrize(
    ("expected", "name", "content"),
    [
        ("no such file: 'missing.py'", "missing.py", None),
        ("'.' is a directory, not a program", ".", None),
        ("'e.py' is empty; write at least one statement, `return 1` for example", "e.py", b""),
        ("'s.py' is empty; write at least one statement, `return 1` for example", "s.py", b" \n\t\n"),
        (
            "'c.py' holds nothing but comments; write at least one statement, `return 1` for example",
            "c.py",
            "# a\n\n  # b\u2028return 1\r# c".encode(),
        ),
        ("'z.py' is not a text file: it has a zero byte at offset 2", "z.py", b"ab\0c"),
        ("'l.py' is not UTF-8 text: byte 0xe9 at offset 1", "l.py", b"x\xe9y"),
        ("cannot read 'e.py/x': Not a directory", "e.py/x", None),
        ("cannot read 'a\\x00b': no path holds a zero byte", "a\0b", None),
    ],
)
def test_what_is_no_program_is_refused_in_one_line(folder, expected, name, content):
    if content is not None:
        (folder / name).write_bytes(content)
    else:
        (folder / "e.py").touch()
    with pytest.raises(CommandError) as caught:
        read(name)
    assert expected == str(caught.value)
    assert 2 == caught.value.status


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CommandError, match="standard input is closed"):
        read("-")


def test_a_hash_inside_a_string_is_no_comment():
    assert "'#'" == read(code="'#'")


def test_empty_code_is_refused():
    with pytest.raises(CommandError, match="the program is empty"):
        read(code="")


def test_code_that_was_not_utf_8_on_the_command_line_is_refused():
    with pytest.raises(CommandError, match="not valid UTF-8"):
        read(code=os.fsdecode(b"return '\xff'"))


def test_a_program_that_is_too_large_comes_back_just_too_large(folder):
    (folder / "big.py").write_text("é" * 5000)
    assert 1000 < len(read("big.py").encode()) < 1010


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(CommandError, match="zero byte at offset 0"):
        read("/dev/zero")
