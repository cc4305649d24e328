"""Places that write and edit refuse to change (DESIGN.md section 10)."""

from __future__ import annotations

import os

import pytest


async def refused(tools, path):
    for name, arguments in (("write", {"content": "x"}), ("edit", {"old_string": "old", "new_string": "x"})):
        error = await tools.error(name, file_path=path, **arguments)
        # An edit of a file that is not there fails for that reason, if it gets so far.
        assert error.code in (
            {"FS_SANDBOX_DENIED"} if name == "write" else {"FS_SANDBOX_DENIED", "FS_STALE_VERSION"}
        )
    return (await tools.error("write", file_path=path, content="x")).text


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/new", "sub/.git/config", ".git", ".GIT/config", "g/config"]
)
async def test_git_directories_are_refused(tools, root, path):
    for directory in (".git/hooks", "sub/.git"):
        (root / directory).mkdir(parents=True)
    for file in (".git/config", "sub/.git/config"):
        (root / file).write_text("old")
    (root / "g").symlink_to(".git")
    if path == ".git":
        (root / "sub2").mkdir()
        path = "sub2/.git"
    assert "git repository" in await refused(tools, path)
    assert (root / ".git/config").read_text() == "old"


async def test_root_inside_a_git_directory_is_refused(root):
    from tool_bindings.tools.confinement import ConfinedRoot
    from tool_bindings.tools.errors import FsError
    from tool_bindings.tools.protection import Protection

    (root / ".git/hooks").mkdir(parents=True)
    with pytest.raises(FsError, match="git repository"):
        Protection(ConfinedRoot(root / ".git/hooks")).check().names(("pre-commit",))


@pytest.mark.parametrize(
    "path", ["env/x.py", "env/lib/deep/x.py", "alias/x.py", "env/pyvenv.cfg", "env/new/dir/x"]
)
async def test_virtual_environments_are_refused(tools, root, path):
    (root / "env/lib/deep").mkdir(parents=True)
    (root / "env/pyvenv.cfg").write_text("old")
    (root / "env/lib/deep/x.py").write_text("old")
    (root / "alias").symlink_to("env/lib")
    assert "virtual environment" in await refused(tools, path)
    assert not (root / "env/new").exists()


async def test_making_a_directory_look_like_a_virtual_environment_is_refused(tools):
    assert "marks a virtual environment" in await refused(tools, "sub/pyvenv.cfg")


@pytest.mark.parametrize("path", ["codemode.toml", "sub/codemode.toml", "alias.toml"])
async def test_settings_are_refused(tools, root, path):
    (root / "codemode.toml").write_text("old")
    (root / "alias.toml").symlink_to("codemode.toml")
    assert "settings" in await refused(tools, path)
    assert (root / "codemode.toml").read_text() == "old"


async def test_refused_name_leaves_no_new_directories(tools, root):
    await tools.error("write", file_path="new/dir/.git/config", content="x")
    await tools.error("write", file_path="new/dir/codemode.toml", content="x")
    assert list(root.iterdir()) == []


async def test_listed_file_is_refused_by_every_name(make_tools, root):
    (root / "tools.py").write_text("old")
    tools = make_tools(protected=[root / "tools.py"])
    os.link(root / "tools.py", root / "hard.py")
    (root / "soft.py").symlink_to("tools.py")
    for path in ("tools.py", "hard.py", "soft.py", f"{root}/tools.py"):
        assert "the operator protects it" in await refused(tools, path)
    assert (root / "tools.py").read_text() == "old"


async def test_listed_file_that_does_not_exist_yet_cannot_be_created(make_tools, root):
    tools = make_tools(protected=[root / "events.jsonl"])
    assert "the operator protects it" in await refused(tools, "events.jsonl")


async def test_listed_file_in_a_directory_that_does_not_exist_yet_cannot_be_created(make_tools, root):
    tools = make_tools(protected=[root / "new/events.jsonl"])
    await tools.error("write", file_path="new/events.jsonl", content="x")
    assert not (root / "new").exists()


async def test_listed_file_replaced_after_the_tools_were_made_is_still_refused(make_tools, root):
    (root / "tools.py").write_text("old")
    tools = make_tools(protected=[root / "tools.py"])
    (root / "tools.py").unlink()
    (root / "tools.py").write_text("newer")
    assert "the operator protects it" in await refused(tools, "tools.py")


async def test_listed_link_protects_itself_and_its_target(make_tools, root):
    (root / "real.py").write_text("old")
    (root / "link.py").symlink_to("real.py")
    tools = make_tools(protected=[root / "link.py"])
    for path in ("link.py", "real.py"):
        assert "the operator protects it" in await refused(tools, path)


async def test_listed_directory_protects_everything_beneath_it(make_tools, root):
    (root / "spill").mkdir()
    (root / "spill/old.txt").write_text("old")
    tools = make_tools(protected=[root / "spill"])
    for path in ("spill/old.txt", "spill/new.txt", "spill/deep/new.txt"):
        assert "the operator protects it" in await refused(tools, path)


async def test_listed_file_outside_the_root_does_not_get_in_the_way(make_tools, root, outside):
    tools = make_tools(protected=[outside / "secret.txt", outside / "no/such/file"])
    await tools("write", file_path="secret.txt", content="x")
    assert (root / "secret.txt").read_text() == "x"


async def test_protected_files_can_be_read(make_tools, root):
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text("ref\n")
    tools = make_tools(protected=[root / ".git/HEAD"])
    assert (await tools("read", file_path=".git/HEAD")).value["totalLines"] == 1
