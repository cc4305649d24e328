"""The kernel wall alone: plain CPython in the locked worker, against a table of raw attacks.

Every attack is tried as root and as an ordinary user, with and without namespaces and Landlock, and once with
nothing in its way, where it has to work: an attack that never works proves nothing.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import errno
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import attacks
import pytest
import trio

from sandbox.limits import Limits
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Outcome, Program, SandboxSettings

pytestmark = pytest.mark.needs_linux

SUPPORT = Path(attacks.__file__).parent
ORDINARY_USER = 65534
CANARY = "canary-5f2e"
LIMITS = Limits(wall_seconds=200, compute_seconds=20, memory_mb=128)
IS_ROOT = os.geteuid() == 0
MACHINE = platform.machine()
REFUSALS = ("PermissionError: [Errno 1]", "RuntimeError: can't start new thread", "AssertionError")
NEVER_IN_THIS_KERNEL = (errno.ENOSYS, errno.ENODEV, errno.EOPNOTSUPP)


@dataclasses.dataclass(frozen=True)
class Condition:
    """Who starts the fork server, and what the kernel seems to lack."""

    user: str
    without: tuple[str, ...] = ()

    @property
    def launcher(self) -> tuple[str, ...]:
        options = [f"--without={mechanism}" for mechanism in self.without]
        if self.user == "ordinary user" and IS_ROOT:
            options.append(f"--uid={ORDINARY_USER}")
        if not options:
            return ()
        return (sys.executable, str(SUPPORT / "prefilter.py"), *options, "--")

    def __str__(self) -> str:
        return f"{self.user}, without {' and '.join(self.without) or 'nothing'}"


USERS = ("root", "ordinary user") if IS_ROOT else ("ordinary user",)
CONDITIONS = tuple(
    Condition(user, without)
    for user in USERS
    for without in ((), ("namespaces",), ("landlock",), ("namespaces", "landlock"))
)


class Range:
    """Targets that can tell whether they were hit."""

    def __init__(self, *, victim_uid: int | None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="attacked-"))
        self.directory.chmod(0o777)
        self.file = self.directory / "file"
        self.file.write_text("canary")
        (self.directory / "victim-file").write_text("canary")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.by_path = socket.socket(socket.AF_UNIX)
        self.by_path.bind(str(self.directory / "socket"))
        self.by_name = socket.socket(socket.AF_UNIX)
        self.by_name.bind("\0" + str(self.directory / "socket"))
        for listener in (self.by_path, self.by_name):
            listener.listen()
        (self.directory / "socket").chmod(0o777)
        self.victim = subprocess.Popen(
            ["sleep", "36000"], env={"SECRET": "CANARY"}, user=victim_uid, group=victim_uid
        )

    def targets(self) -> attacks.Targets:
        return attacks.Targets(
            file=str(self.file),
            directory=str(self.directory),
            port=self.tcp.getsockname()[1],
            unix=str(self.directory / "socket"),
            victim=self.victim.pid,
        )

    def traces(self) -> list[str]:
        """Return what an attack left behind."""
        found = []
        for name, listener in (("tcp", self.tcp), ("path", self.by_path), ("name", self.by_name)):
            listener.setblocking(False)
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                continue
            found.append(f"connection over {name}")
        if sorted(path.name for path in self.directory.iterdir()) != ["file", "socket", "victim-file"]:
            found.append("files")
        if self.file.read_text() != "canary" or (self.directory / "victim-file").read_text() != "canary":
            found.append("contents of files")
        if self.victim.poll() is not None:
            found.append("the other process is dead")
        return found

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for listener in (self.tcp, self.by_path, self.by_name):
            listener.close()
        shutil.rmtree(self.directory)


@pytest.fixture(scope="module")
def shooting_range():
    made = Range(victim_uid=ORDINARY_USER if IS_ROOT else None)
    yield made
    made.close()


@pytest.fixture(scope="module")
def results(shooting_range):
    """Outcome of every attack under every condition, all tried at once: a run takes longer than an attack."""
    found: dict[tuple[Condition, str], Outcome] = {}
    targets = shooting_range.targets()

    async def attack_under(condition: Condition) -> None:
        settings = SandboxSettings(limits=LIMITS, parked_workers=2)
        async with open_test_sandbox(settings, language_wall=False, launcher=condition.launcher) as sandbox:
            active = {step.name for step in sandbox.isolation if step.active}
            assert {"seccomp", "rlimits", "no-new-privileges"} <= active
            assert not active & set(condition.without)
            for attack in attacks.ATTACKS:
                found[condition, attack.name] = await sandbox.run(Program(attack.program(targets, MACHINE)))

    async def attack_everywhere() -> None:
        async with trio.open_nursery() as nursery:
            for condition in CONDITIONS:
                nursery.start_soon(attack_under, condition)

    trio.run(attack_everywhere)
    return found


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_refused(results, attack, condition):
    outcome = results[condition, attack.name]
    assert outcome.value is not True
    if outcome.failure is None:
        # A libc function that answers with a number instead of raising.
        assert outcome.value is False
    elif outcome.failure.kind == "exception":
        # By the wall, and not by a mistake in the attack.
        assert outcome.failure.message.startswith(REFUSALS)
    else:
        assert outcome.failure.kind == "worker-exit"


def test_no_attack_left_a_trace_on_its_targets(results, shooting_range):
    assert len(results) >= 40 * len(CONDITIONS)
    assert [] == shooting_range.traces()


@pytest.fixture(scope="module")
def open_results():
    """What each attack comes to in a process without any wall, each with targets of its own."""
    possible = [attack for attack in attacks.ATTACKS if IS_ROOT or not attack.needs_root]

    def attack_in_the_open(attack: attacks.Attack) -> tuple[str, str]:
        targets = Range(victim_uid=None)
        try:
            done = subprocess.run(
                [sys.executable, str(SUPPORT / "open_attacker.py")],
                input=attack.program(targets.targets(), MACHINE),
                capture_output=True,
                text=True,
                timeout=300,
            )
        finally:
            targets.close()
        return attack.name, (done.stdout + done.stderr).strip()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return dict(pool.map(attack_in_the_open, possible))


@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.name)
def test_the_same_attack_works_with_nothing_in_its_way(open_results, attack):
    if attack.name not in open_results:
        pytest.skip("only root can do this in the open")
    said = open_results[attack.name]
    if any(f"[Errno {number}]" in said for number in NEVER_IN_THIS_KERNEL):
        pytest.skip(f"this kernel does not have it: {said}")
    assert "True" == said


def test_most_of_the_attacks_were_seen_to_work(open_results):
    assert sum(said == "True" for said in open_results.values()) >= 40
