"""Attacks on the confinement of paths (DESIGN.md section 10).

Every test runs with the kernel's confined resolution (openat2) and with the walk alone.
"""

from __future__ import annotations

import gc
import os
import stat
import threading
import time

import pytest

from tool_bindings.tools.confinement import ConfinedRoot
from tool_bindings.tools.errors import FsError


@pytest.fixture(params=[True, False], ids=["openat2", "walk"])
def confined(request, root):
    return ConfinedRoot(root, use_openat2=request.param)


def content(confined, path):
    with confined.find(path) as found:
        fd = confined.open_for_reading(found)
        try:
            return os.read(fd, 100)
        finally:
            os.close(fd)


def refusal(confined, path, **options):
    with pytest.raises(FsError) as caught, confined.find(path, **options):
        pass
    return caught.value


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "a/b/../../../outside/secret.txt",
        "./.././outside/secret.txt",
        "../root/a/inside.txt",  # Comes back, but on the way it was outside.
        "/etc/passwd",
        "/",
        "/proc/self/environ",
        "/dev/null",
        "//etc/passwd",
    ],
)
def test_path_that_leaves_the_root_is_refused(confined, root, outside, path):
    (root / "a/b").mkdir(parents=True)
    error = refusal(confined, path)
    assert error.code == "FS_SANDBOX_DENIED"
    assert f'"{path}" leads outside the root "{root}"' in str(error)


def test_absolute_path_beside_the_root_with_the_same_prefix_is_refused(confined, root):
    sibling = root.with_name("root2")
    sibling.mkdir()
    (sibling / "a.txt").write_text("CANARY")
    assert refusal(confined, f"{sibling}/a.txt").code == "FS_SANDBOX_DENIED"


def test_absolute_path_that_leaves_the_root_by_dots_is_refused(confined, root, outside):
    assert refusal(confined, f"{root}/../outside/secret.txt").code == "FS_SANDBOX_DENIED"


@pytest.mark.parametrize("target", ["../outside/secret.txt", "{outside}/secret.txt"])
def test_link_to_a_file_outside_is_refused(confined, root, outside, target):
    (root / "link").symlink_to(target.format(outside=outside))
    assert refusal(confined, "link").code == "FS_SANDBOX_DENIED"


@pytest.mark.parametrize("target", ["../outside", "{outside}"])
def test_link_to_a_directory_outside_is_refused_as_part_of_a_path(confined, root, outside, target):
    (root / "link").symlink_to(target.format(outside=outside))
    assert refusal(confined, "link/secret.txt").code == "FS_SANDBOX_DENIED"
    assert refusal(confined, "link").code == "FS_SANDBOX_DENIED"


def test_chain_of_links_that_ends_outside_is_refused(confined, root, outside):
    (root / "d").mkdir()
    (root / "d/last").symlink_to("../../outside/secret.txt")
    (root / "middle").symlink_to("d/last")
    (root / "first").symlink_to(f"{root}/middle")
    assert refusal(confined, "first").code == "FS_SANDBOX_DENIED"


def test_link_that_leaves_and_comes_back_is_refused(confined, root):
    (root / "a.txt").touch()
    (root / "link").symlink_to("../root/a.txt")
    assert refusal(confined, "link").code == "FS_SANDBOX_DENIED"


@pytest.mark.parametrize("target", ["real/a.txt", "./real/../real/a.txt", "{root}/real/a.txt"])
def test_link_that_stays_inside_is_followed(confined, root, target):
    (root / "real").mkdir()
    (root / "real/a.txt").write_text("inside")
    (root / "link").symlink_to(target.format(root=root))
    assert content(confined, "link") == b"inside"


def test_names_of_a_link_are_those_of_its_target(confined, root):
    (root / "real").mkdir()
    (root / "real/a.txt").touch()
    (root / "link").symlink_to(f"{root}/real")
    with confined.find("link/a.txt", want_names=True) as found:
        assert found.names == ("real", "a.txt")


def test_dots_after_a_link_mean_the_parent_of_its_target(confined, root):
    (root / "deep/er").mkdir(parents=True)
    (root / "deep/a.txt").write_text("deep")
    (root / "a.txt").write_text("top")
    (root / "link").symlink_to("deep/er")
    assert content(confined, "link/../a.txt") == b"deep"


def test_dots_after_a_link_cannot_leave(confined, root, outside):
    (root / "deep").mkdir()
    (root / "link").symlink_to("deep")
    assert refusal(confined, "link/../../outside/secret.txt").code == "FS_SANDBOX_DENIED"


def test_link_loop_ends_with_an_error(confined, root):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    error = refusal(confined, "a")
    assert (error.code, str(error)) == ("FS_IO_ERROR", 'cannot open "a": too many symbolic links')


def test_dangling_link_inside_does_not_exist(confined, root):
    (root / "link").symlink_to("nowhere/at/all")
    with confined.find("link", want_names=True) as found:
        assert (found.fd, found.names) == (None, ("nowhere", "at", "all"))


def test_dangling_link_that_points_outside_is_refused(confined, root):
    (root / "link").symlink_to("../nowhere")
    assert refusal(confined, "link").code == "FS_SANDBOX_DENIED"


def test_magic_link_of_procfs_is_refused(confined, root):
    (root / "link").symlink_to("/proc/self/root/etc/passwd")
    assert refusal(confined, "link").code == "FS_SANDBOX_DENIED"


def test_link_in_the_roots_own_path_is_followed_and_both_spellings_work(tmp_path, root):
    (root / "a.txt").write_text("inside")
    (tmp_path / "alias").symlink_to(root)
    confined = ConfinedRoot(tmp_path / "alias")
    assert content(confined, f"{tmp_path}/alias/a.txt") == b"inside"
    assert content(confined, f"{root}/a.txt") == b"inside"
    with confined.find(f"{root}/a.txt") as found:
        assert f"{tmp_path}/alias/a.txt" == found.display


def test_missing_component_before_dots_is_not_found(confined):
    assert refusal(confined, "no/../a.txt").code == "FS_NOT_FOUND"


def test_name_of_256_bytes_is_refused_with_its_bound(confined):
    error = refusal(confined, "x" * 256)
    assert error.code == "FS_IO_ERROR"
    assert "usually 255 bytes" in str(error)


def test_very_deep_path_resolves(confined, root):
    path = "/".join(["d"] * 400)
    fd = os.open(root, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    with confined.find(path, want_names=True) as found:
        assert stat.S_ISDIR(found.stat.st_mode)
        assert len(found.names) == 400


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory"])
def test_only_regular_files_are_opened_for_reading(confined, root, kind):
    if kind == "fifo":
        os.mkfifo(root / "it")
    elif kind == "socket":
        os.mknod(root / "it", stat.S_IFSOCK | 0o600)
    else:
        (root / "it").mkdir()
    with confined.find("it") as found, pytest.raises(FsError) as caught:
        confined.open_for_reading(found)
    assert caught.value.code == "FS_NOT_REGULAR_FILE"


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="making a device node needs root")
def test_device_node_inside_the_root_is_not_opened(confined, root):
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with confined.find("null") as found, pytest.raises(FsError) as caught:
        confined.open_for_reading(found)
    assert "is a character device" in str(caught.value)


def test_file_swapped_for_a_link_after_the_check_is_still_the_checked_file(confined, root, outside):
    (root / "a.txt").write_text("inside")
    with confined.find("a.txt") as found:
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(outside / "secret.txt")
        fd = confined.open_for_reading(found)
        try:
            assert os.read(fd, 100) == b"inside"
        finally:
            os.close(fd)


def test_file_swapped_for_a_fifo_after_the_check_does_not_block(confined, root):
    (root / "a.txt").write_text("inside")
    with confined.find("a.txt") as found:
        (root / "a.txt").unlink()
        os.mkfifo(root / "a.txt")
        fd = confined.open_for_reading(found)
        try:
            assert os.read(fd, 100) == b"inside"
        finally:
            os.close(fd)


def test_directory_swapped_for_a_link_after_resolving_is_refused(confined, root, outside):
    (root / "d").mkdir()
    with confined.find("d/new.txt", want_names=True) as found:
        names = found.names
    (root / "d").rmdir()
    (root / "d").symlink_to(outside)
    with pytest.raises(FsError), confined.open_directory(names[:-1], create=True):
        pass


def test_nothing_outside_is_ever_read_while_a_directory_is_swapped_for_a_link(confined, root, outside):
    """The race itself, run many times: what is read is the inside file or nothing."""
    (root / "real").mkdir()
    (root / "real/secret.txt").write_text("inside")
    (root / "d").symlink_to("real")
    stop = threading.Event()

    def swap():
        turn = 0
        while not stop.is_set():
            turn += 1
            spare = root / f"spare{turn}"
            spare.symlink_to(outside if turn % 2 else "real")
            spare.rename(root / "d")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        deadline = time.monotonic() + 120
        attempts = 0
        while attempts < 1000 or (len(seen) < 2 and time.monotonic() < deadline):
            attempts += 1
            try:
                seen.add(content(confined, "d/secret.txt"))
            except FsError as error:
                seen.add(error.code)
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"inside", "FS_SANDBOX_DENIED"}
    assert seen == {b"inside", "FS_SANDBOX_DENIED"}, "the swap never hit; the test proves nothing"


def test_renaming_the_root_does_not_move_the_confinement(confined, root, tmp_path):
    (root / "a.txt").write_text("inside")
    root.rename(tmp_path / "elsewhere")
    root.mkdir()
    (root / "a.txt").write_text("other")
    assert content(confined, "a.txt") == b"inside"


def test_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FsError) as caught:
        ConfinedRoot(tmp_path / "file")
    assert caught.value.code == "FS_NOT_DIRECTORY"


def test_root_descriptor_is_closed_with_the_object(root):
    confined = ConfinedRoot(root)
    fd = confined.fd
    os.fstat(fd)
    del confined
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_whole_file_system_as_root_works(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    confined = ConfinedRoot(tmp_path.__class__("/"))
    with confined.find(f"{tmp_path}/a.txt") as found:
        assert f"{tmp_path}/a.txt" == found.display
