"""Atomic replacement of one directory entry."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from tool_bindings.tools.publish import TargetLocks, publish


@pytest.fixture
def directory(root):
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def put(directory, name, content, *, replaces=None, if_absent=False, verify=lambda: None):
    return publish(directory, name, content, replaces=replaces, if_absent=if_absent, verify=verify)


def test_new_file_has_the_content_and_the_mode_the_umask_gives(directory, root):
    facts = put(directory, "a", b"x" * 1_000_000)
    (root / "plain").touch()
    assert (root / "a").read_bytes() == b"x" * 1_000_000
    assert (root / "plain").stat().st_mode == facts.st_mode


def test_facts_returned_are_those_of_the_published_file(directory, root):
    for if_absent in (False, True):
        facts = put(directory, f"a{if_absent}", b"x", if_absent=if_absent)
        assert (root / f"a{if_absent}").stat() == facts


def test_mode_of_a_replaced_file_is_kept_without_the_set_id_bits(directory, root):
    (root / "a").touch()
    (root / "a").chmod(0o4751)
    put(directory, "a", b"new", replaces=(root / "a").stat())
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o751


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_owner_of_a_replaced_file_is_kept(directory, root):
    (root / "a").touch()
    os.chown(root / "a", 4321, 1234)
    put(directory, "a", b"new", replaces=(root / "a").stat())
    facts = (root / "a").stat()
    assert (facts.st_uid, facts.st_gid) == (4321, 1234)


def test_link_at_the_target_is_replaced_and_not_followed(directory, root, outside):
    (root / "a").symlink_to(outside / "secret.txt")
    put(directory, "a", b"new")
    assert (outside / "secret.txt").read_text() == "CANARY\n"
    assert not (root / "a").is_symlink()


def test_if_absent_never_clobbers_a_file_created_at_the_last_moment(directory, root):
    with pytest.raises(FileExistsError):
        put(directory, "a", b"mine", if_absent=True, verify=lambda: (root / "a").write_text("theirs"))
    assert (root / "a").read_text() == "theirs"


def test_giving_up_leaves_the_old_file_and_no_litter(directory, root):
    (root / "a").write_text("old")

    def give_up():
        assert len(list(root.glob(".codemode-*"))) == 1
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        put(directory, "a", b"new", verify=give_up)
    assert [root / "a"] == list(root.iterdir())
    assert (root / "a").read_text() == "old"


def test_staged_content_is_private_until_it_is_published(directory, root):
    modes = []

    def look():
        (staging,) = root.glob(".codemode-*")
        modes.append(stat.S_IMODE(staging.stat().st_mode))

    put(directory, "a", b"new", verify=look)
    assert modes == [0o700]


def test_reader_sees_the_old_or_the_new_file_and_nothing_between(directory, root):
    (root / "a").write_bytes(b"0" * 100_000)
    stop = threading.Event()
    seen = set()

    reading = threading.Event()

    def read():
        while not stop.is_set():
            data = (root / "a").read_bytes()
            seen.add((len(data), len(set(data))))
            reading.set()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert reading.wait(60)
        for turn in range(10):
            put(directory, "a", str(turn % 10).encode() * 100_000)
    finally:
        stop.set()
        thread.join()
    assert {(100_000, 1)} == seen


def test_locks_of_one_target_exclude_and_of_two_do_not():
    locks = TargetLocks()
    order = []
    entered = threading.Event()

    def second():
        with locks.hold("other"):
            order.append("other")
            entered.set()
        with locks.hold("same"):
            order.append("second")

    with locks.hold("same"):
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["other", "first", "second"]


def test_locks_are_forgotten_when_nobody_holds_them():
    locks = TargetLocks()
    with locks.hold("a"):
        assert len(locks._locks) == 1
    assert len(locks._locks) == 0
