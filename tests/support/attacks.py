"""Raw attacks on the kernel wall, as programs of plain CPython.

Each is the body of an async function that returns True when the attack worked. `$name` stands for a target
that the test has set up: see `Targets`. `nr(name)` is the number of a system call on this machine.
"""

from __future__ import annotations

import dataclasses
import string
import textwrap

SYSCALLS = {
    "x86_64": {
        "access": 21,
        "add_key": 248,
        "bpf": 321,
        "capset": 126,
        "clone3": 435,
        "dup": 32,
        "epoll_create1": 291,
        "eventfd2": 290,
        "execve": 59,
        "fanotify_init": 300,
        "fcntl": 72,
        "getppid": 110,
        "inotify_init1": 294,
        "io_uring_setup": 425,
        "kcmp": 312,
        "keyctl": 250,
        "kill": 62,
        "landlock_create_ruleset": 444,
        "memfd_create": 319,
        "mprotect": 10,
        "msgget": 68,
        "name_to_handle_at": 303,
        "openat": 257,
        "openat2": 437,
        "perf_event_open": 298,
        "personality": 135,
        "pidfd_getfd": 438,
        "pidfd_open": 434,
        "pidfd_send_signal": 424,
        "prctl": 157,
        "prlimit64": 302,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "ptrace": 101,
        "seccomp": 317,
        "semget": 64,
        "setitimer": 38,
        "shmget": 29,
        "statx": 332,
        "syslog": 103,
        "tgkill": 234,
        "timerfd_create": 283,
        "unshare": 272,
        "userfaultfd": 323,
    },
    "aarch64": {
        "add_key": 217,
        "bpf": 280,
        "capset": 91,
        "clone3": 435,
        "dup": 23,
        "epoll_create1": 20,
        "eventfd2": 19,
        "execve": 221,
        "fanotify_init": 262,
        "fcntl": 25,
        "getppid": 173,
        "inotify_init1": 26,
        "io_uring_setup": 425,
        "kcmp": 272,
        "keyctl": 219,
        "kill": 129,
        "landlock_create_ruleset": 444,
        "memfd_create": 279,
        "mprotect": 226,
        "msgget": 186,
        "name_to_handle_at": 264,
        "openat": 56,
        "openat2": 437,
        "perf_event_open": 241,
        "personality": 92,
        "pidfd_getfd": 438,
        "pidfd_open": 434,
        "pidfd_send_signal": 424,
        "prctl": 167,
        "prlimit64": 261,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "ptrace": 117,
        "seccomp": 277,
        "semget": 190,
        "setitimer": 103,
        "shmget": 194,
        "statx": 291,
        "syslog": 116,
        "tgkill": 131,
        "timerfd_create": 85,
        "unshare": 97,
        "userfaultfd": 282,
    },
}

_PRELUDE = """
import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = $numbers
def nr(name):
    return NUMBERS[name]
def call(name, *args):
    result = libc.syscall(ctypes.c_long(nr(name)), *(ctypes.c_long(a) if type(a) is int else a for a in args))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result
libc.mmap.restype = ctypes.c_void_p
def map_page(protection):
    address = libc.mmap(None, ctypes.c_size_t(4096), protection, 0x22, -1, ctypes.c_long(0))
    if address == 2 ** 64 - 1:
        raise OSError(ctypes.get_errno(), 'mmap')
    return address
"""


@dataclasses.dataclass(frozen=True)
class Targets:
    """What attacks are aimed at."""

    file: str
    """A file that everybody may read; it says "canary"."""
    directory: str
    """A directory that everybody may write to."""
    port: int
    """A TCP port of this machine on which somebody listens."""
    unix: str
    """Path of a unix socket on which somebody listens."""
    victim: int
    """A process of the same user."""


@dataclasses.dataclass(frozen=True)
class Attack:
    """One attack; `needs_root` when only root could do it in the open."""

    name: str
    body: str
    needs_root: bool = False

    def program(self, targets: Targets, machine: str) -> str:
        source = textwrap.dedent(_PRELUDE) + textwrap.dedent(self.body)
        return string.Template(source).substitute(
            dataclasses.asdict(targets), numbers=repr(SYSCALLS[machine])
        )


ATTACKS = (
    # ---- files
    Attack("open a file", "return 'canary' in open('$file').read()"),
    Attack("openat", "return call('openat', -100, b'$file', 0, 0) >= 0"),
    Attack("openat2", "return call('openat2', -100, b'$file', struct.pack('QQQ', 0, 0, 0), 24) >= 0"),
    Attack("read the password file", "return 'root' in open('/etc/passwd').read()"),
    Attack("read own environment from /proc", "return open('/proc/self/environ', 'rb').read() is not None"),
    Attack(
        "read another process's environment", "return b'CANARY' in open('/proc/$victim/environ', 'rb').read()"
    ),
    Attack("read own memory map", "return 'stack' in open('/proc/self/maps').read()"),
    Attack("read another process's command line", "return bool(open('/proc/$victim/cmdline', 'rb').read())"),
    Attack(
        "list a directory",
        "return len(os.listdir('/')) > 0 and os.path.basename('$file') in os.listdir('$directory')",
    ),
    Attack("stat", "return os.stat('$file').st_size > 0"),
    Attack("statx", "return call('statx', -100, b'$file', 0, 0xFFF, ctypes.create_string_buffer(256)) == 0"),
    Attack("read a link", "return bool(os.readlink('/proc/self/exe'))"),
    Attack("create a file", "os.close(os.open('$directory/new', os.O_CREAT | os.O_WRONLY)); return True"),
    Attack(
        "write a file",
        "os.write(os.open('$directory/mine', os.O_CREAT | os.O_WRONLY, 0o666), b'x'); return True",
    ),
    Attack("truncate a file", "os.truncate('$directory/victim-file', 0); return True"),
    Attack("remove a file", "os.unlink('$directory/victim-file'); return True"),
    Attack("rename a file", "os.rename('$directory/victim-file', '$directory/other'); return True"),
    Attack("make a directory", "os.mkdir('$directory/made'); return True"),
    Attack("make a symbolic link", "os.symlink('/etc', '$directory/link'); return True"),
    Attack(
        "make a hard link",
        "os.link('$directory/victim-file', '$directory/hard'); return True",
        needs_root=True,
    ),
    Attack("change the directory", "os.chdir('/tmp'); return True"),
    Attack(
        "change the mode of a file",
        "os.close(os.open('$directory/c', os.O_CREAT)); os.chmod('$directory/c', 0o777); return True",
    ),
    Attack(
        "name_to_handle_at",
        "handle = struct.pack('II', 128, 0) + bytes(128)\n"
        "mount = ctypes.create_string_buffer(8)\n"
        "return call('name_to_handle_at', -100, b'$file', handle, mount, 0) == 0",
    ),
    Attack("change the root", "os.chroot('/tmp'); return True", needs_root=True),
    Attack(
        "mount",
        "worked = libc.mount(b'none', b'$directory', b'tmpfs', ctypes.c_ulong(0), None) == 0\n"
        "libc.umount2(b'$directory', 2)\nreturn worked",
        needs_root=True,
    ),
    Attack("inotify", "return call('inotify_init1', 0) >= 0"),
    Attack("fanotify", "return call('fanotify_init', 0, 0) >= 0", needs_root=True),
    # ---- network
    Attack("TCP socket", "socket.socket(); return True"),
    Attack("connect over TCP", "s = socket.socket(); s.connect(('127.0.0.1', $port)); return True"),
    Attack("listen on TCP", "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); return True"),
    Attack("UDP socket", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM); return True"),
    Attack("unix socket by path", "s = socket.socket(socket.AF_UNIX); s.connect('$unix'); return True"),
    Attack(
        "unix socket by abstract name",
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + '$unix'); return True",
    ),
    Attack("netlink socket", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); return True"),
    Attack(
        "packet socket", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); return True", needs_root=True
    ),
    Attack("socket pair", "socket.socketpair(); return True"),
    # ---- descriptors
    Attack("pipe", "os.pipe(); return True"),
    Attack("memory file", "return call('memfd_create', b'x', 0) >= 0"),
    Attack("event descriptor", "return call('eventfd2', 0, 0) >= 0"),
    Attack("epoll", "return call('epoll_create1', 0) >= 0"),
    Attack("timer descriptor", "return call('timerfd_create', 1, 0) >= 0"),
    Attack("duplicate the wire", "return call('dup', 3) >= 0"),
    Attack("duplicate the wire by fcntl", "return call('fcntl', 3, 0, 0) >= 0"),
    Attack("out-of-band data on the wire", "return socket.socket(fileno=3).send(b'x', socket.MSG_OOB) == 1"),
    Attack(
        "pass a descriptor over the wire",
        "return socket.send_fds(socket.socket(fileno=3), [b'x'], [3]) == 1",
    ),
    Attack("look at the wire without reading", "import select; return call('fcntl', 3, 3, 0) >= 0"),
    # ---- processes
    Attack("fork", "pid = os.fork()\nif pid == 0: os._exit(0)\nreturn pid > 0"),
    Attack(
        "clone3",
        "pid = call('clone3', struct.pack('QQQQQQQQ', 0, 0, 0, 0, 17, 0, 0, 0), 64)\n"
        "if pid == 0: libc._exit(0)\nreturn pid > 0",
    ),
    Attack(
        "start a thread",
        "import threading; t = threading.Thread(target=print); t.start(); t.join(); return True",
    ),
    Attack("start a command", "import subprocess; return subprocess.run(['/bin/true']).returncode == 0"),
    Attack("posix_spawn", "return os.posix_spawn('/bin/true', ['true'], {}) > 0"),
    Attack("exec", "os.execv('/bin/echo', ['echo', 'True'])"),
    Attack(
        "raw execve",
        "argv = (ctypes.c_char_p * 3)(b'echo', b'True', None)\n"
        "return call('execve', b'/bin/echo', argv, None)",
    ),
    Attack("signal a process", "os.kill($victim, 9); return True"),
    Attack("signal the parent", "p = call('getppid'); assert p > 0; return call('kill', p, 0) == 0"),
    Attack("signal itself", "return call('tgkill', os.getpid(), os.getpid(), 0) == 0"),
    Attack("trace a process", "return call('ptrace', 16, $victim, 0, 0) == 0"),
    Attack("ask to be traced", "return call('ptrace', 0, 0, 0, 0) == 0"),
    Attack("process descriptor", "return call('pidfd_open', $victim, 0) >= 0"),
    Attack("process descriptor of itself", "return call('pidfd_open', os.getpid(), 0) >= 0"),
    Attack(
        "signal through a process descriptor",
        "return call('pidfd_send_signal', call('pidfd_open', $victim, 0), 9, None, 0) == 0",
    ),
    Attack(
        "steal a descriptor",
        "return call('pidfd_getfd', call('pidfd_open', os.getpid(), 0), 3, 0) >= 0",
    ),
    Attack(
        "read a process's memory",
        """
        here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b'secret!')
        local = struct.pack('PN', ctypes.addressof(here), 8)
        remote = struct.pack('PN', ctypes.addressof(there), 8)
        return call('process_vm_readv', os.getpid(), local, 1, remote, 1, 0) == 8
        """,
    ),
    Attack(
        "write a process's memory",
        """
        here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
        local = struct.pack('PN', ctypes.addressof(here), 8)
        remote = struct.pack('PN', ctypes.addressof(there), 8)
        return call('process_vm_writev', os.getpid(), local, 1, remote, 1, 0) == 8
        """,
    ),
    Attack("open a process's memory", "return os.open('/proc/$victim/mem', os.O_RDWR) >= 0"),
    Attack("compare processes", "return call('kcmp', os.getpid(), os.getpid(), 0, 0, 0) == 0"),
    # ---- its own bounds
    Attack("raise a limit", "return call('prlimit64', 0, 4, struct.pack('QQ', 0, 0), None) == 0"),
    Attack(
        "prlimit of another process",
        "return call('prlimit64', $victim, 7, None, ctypes.create_string_buffer(16)) == 0",
    ),
    Attack(
        "lower niceness",
        "os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)); return True",
    ),
    Attack("choose a processor", "os.sched_setaffinity(0, os.sched_getaffinity(0)); return True"),
    Attack(
        "catch the signal of the CPU limit",
        "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN); return True",
    ),
    Attack("interval timer", "return call('setitimer', 0, struct.pack('QQQQ', 0, 0, 1000, 0), None) == 0"),
    Attack("outlive the parent", "return call('prctl', 1, 0, 0, 0, 0) == 0"),
    Attack("become dumpable", "return call('prctl', 4, 1, 0, 0, 0) == 0"),
    Attack("install another filter", "return call('seccomp', 2, 0, ctypes.create_string_buffer(1)) == 0"),
    Attack(
        "make a Landlock ruleset", "return call('landlock_create_ruleset', struct.pack('Q', 1), 8, 0) >= 0"
    ),
    Attack("personality", "return call('personality', 0x0040000) >= 0"),
    # ---- privileges
    Attack("become root", "os.setuid(0); return True", needs_root=True),
    Attack("change the user", "os.setresuid(1000, 1000, 1000); return True", needs_root=True),
    Attack("change the groups", "os.setgroups([0]); return True", needs_root=True),
    Attack("set capabilities", "return call('capset', struct.pack('Ii', 0x20080522, 0), bytes(24)) == 0"),
    Attack("enter a user namespace", "return call('unshare', 0x10000000) == 0"),
    Attack("enter a mount namespace", "return call('unshare', 0x00020000) == 0", needs_root=True),
    # ---- rarely used and often broken parts of the kernel
    Attack(
        "bpf",
        "return call('bpf', 0, struct.pack('IIIII', 2, 4, 4, 1, 0) + bytes(108), 128) >= 0",
        needs_root=True,
    ),
    Attack("io_uring", "return call('io_uring_setup', 1, ctypes.create_string_buffer(256)) >= 0"),
    Attack(
        "performance counters",
        "return call('perf_event_open', struct.pack('IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0) >= 0",
    ),
    Attack("userfaultfd", "return call('userfaultfd', 1) >= 0"),
    Attack("keyring", "return call('keyctl', 0, -3, 1) != 0"),
    Attack("add a key", "return call('add_key', b'user', b'canary', b'x', 1, -3) > 0"),
    Attack("shared memory", "i = call('shmget', 0, 4096, 0o600); libc.shmctl(i, 0, None); return True"),
    Attack("message queue", "i = call('msgget', 0, 0o600); libc.msgctl(i, 0, None); return True"),
    Attack("semaphores", "i = call('semget', 0, 1, 0o600); libc.semctl(i, 0, 0); return True"),
    Attack("read the kernel's log", "return call('syslog', 10, None, 0) >= 0", needs_root=True),
    # ---- machine code
    Attack(
        "make memory executable",
        "return call('mprotect', map_page(3), 4096, 7) == 0",
    ),
    Attack("map executable memory", "return map_page(7) > 0"),
    # ---- information
    Attack("host name", "return bool(os.uname().nodename)"),
    Attack("parent's number", "return call('getppid') > 0"),
)
