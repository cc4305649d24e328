"""`codemode init` writes files that work, and writes over nothing."""

from __future__ import annotations

import json
import shlex

import pytest

pytestmark = pytest.mark.needs_linux


@pytest.mark.parametrize("arguments", [[], ["first steps"], ["new/deeper/steps"]])
def test_the_command_it_prints_runs_what_it_wrote(codemode, folder, arguments):
    status, out, err = codemode("init", *arguments)
    assert (0, "") == (status, err)
    program, *command = shlex.split(out.splitlines()[-1])
    assert "codemode" == program
    status, out, err = codemode(*command)
    assert (0, "") == (status, err)
    assert out.startswith("apple   0.50\n")
    assert "not sold: there is no item 'plum'; the items are: apple, pear, quince\n" in out
    status, out, _ = codemode(*command, "--json")
    assert {"total": 4.0, "ordered": {"item": "apple", "ordered": 3}} == json.loads(out)["result"]


@pytest.mark.parametrize("name", ["my_tools.py", "example.py"])
def test_nothing_is_written_over(codemode, folder, name):
    (folder / name).write_text("mine\n")
    status, out, err = codemode("init")
    assert (2, "") == (status, out)
    assert [
        f"codemode init: {name!r} is there already; nothing was written. Name another directory"
    ] == err.splitlines()
    assert [name] == [path.name for path in folder.iterdir()]
    assert "mine\n" == (folder / name).read_text()


def test_a_directory_that_cannot_be_made_gives_one_line(codemode, folder):
    (folder / "file").touch()
    for name in ("file", "file/deeper", "/proc/nobody/makes/this"):
        status, out, err = codemode("init", name)
        assert (2, "", 1) == (status, out, err.count("\n"))
        assert f"codemode init: cannot write to '{name}': " in err


def test_what_cannot_be_finished_leaves_no_directory_behind(codemode, folder):
    # A file size limit fails the first write; Python ignores the signal that comes with it.
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    status, out, err = codemode("init", "new/deeper", preexec_fn=limit)
    assert (2, "") == (status, out)
    assert "codemode init: cannot write to 'new/deeper': File too large\n" == err
    assert [] == list(folder.iterdir())
