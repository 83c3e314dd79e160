"""Start a program under Landlock, where bubblewrap cannot make a sandbox.

Weaker than bubblewrap: what is hidden cannot be opened but its names may be seen, protected paths inside
writable ones cannot be held, UDP and sockets in the file system are not stopped, there is no scratch space
of its own and no bound on the number of root's processes. So it counts as unconfined; it is the second
line where there is no first. Calls of the kernel are filtered as in a sandbox.

This file is also the program itself: started by its path with as little of the library as can be, it
reads one JSON object from its first argument, gives up rights, and becomes the command.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import struct
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_ONLY = 1
_NO_NEW_PRIVS, _SET_SECCOMP, _BY_FILTER = 38, 22, 2  # from linux/prctl.h, linux/seccomp.h
_LINE = 8  # bytes of a filter
_PATH_BENEATH = 1
_RIGHTS_OF_VERSION = (0, 13, 14, 15, 15, 16)  # how many rights on files each version knows
_READING = 0b1101  # execute, read a file, read a directory
_ON_FILES = 0b111 | 1 << 14 | 1 << 15  # of a single file: execute, write, read, truncate, ioctl
_DEVICES = 1 << 6 | 1 << 11  # making some: never
_CONNECT_AND_BIND = 0b11
_NET_SINCE, _SCOPE_SINCE = 4, 6
_SCOPES = 0b11  # abstract sockets and signals


def version() -> int:
    """Which version of Landlock the kernel has; 0 if none."""
    if sys.platform != "linux":
        return 0
    found = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_ONLY))
    return max(0, int(found))


def restrict(readable: list[str], writable: list[str], *, network: bool) -> None:
    """Let this process, and what it becomes, touch only what lies beneath these places."""
    kind = version()
    if kind == 0:
        raise OSError("the kernel has no Landlock")
    rights = (1 << _RIGHTS_OF_VERSION[min(kind, len(_RIGHTS_OF_VERSION) - 1)]) - 1
    net = 0 if network or kind < _NET_SINCE else _CONNECT_AND_BIND
    scopes = _SCOPES if kind >= _SCOPE_SINCE else 0
    wanted = struct.pack("=QQQ", rights, net, scopes)
    size = 8 if kind < _NET_SINCE else 16 if kind < _SCOPE_SINCE else 24
    libc = _libc()
    rules = _call(libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(size), ctypes.c_uint(0)))
    for places, allowed in ((readable, _READING), (writable, rights & ~_DEVICES)):
        for place in places:
            _allow(libc, rules, place, allowed & rights)
    _call(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _call(libc.syscall(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint(0)))
    os.close(rules)


def filter_calls(lines: bytes) -> None:
    """Let this process, and what it becomes, make only the calls that a filter lets through."""
    held = ctypes.create_string_buffer(lines, len(lines))
    program = struct.pack("@HP", len(lines) // _LINE, ctypes.addressof(held))
    _call(_libc().prctl(_SET_SECCOMP, _BY_FILTER, program, 0, 0), "the filter")


def _allow(libc: ctypes.CDLL, rules: int, place: str, rights: int) -> None:
    try:
        folder = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    try:
        if not os.path.isdir(f"/proc/self/fd/{folder}"):
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, folder)
        _call(
            libc.syscall(
                _ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint(0)
            ),
            place,
        )
    finally:
        os.close(folder)


def _call(found: int, place: str = "") -> int:
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place or "the rules")
    return found


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Give up rights and become the command; exit codes are those of `setpriv`."""
    asked = json.loads(sys.argv[1])
    try:
        for number, most in asked["limits"]:
            soft, hard = resource.getrlimit(number)
            hard = most if hard == resource.RLIM_INFINITY else min(hard, most)
            soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
            resource.setrlimit(number, (soft, hard))
        restrict(asked["readable"], asked["writable"], network=asked["network"])
        if asked["calls"]:
            filter_calls(bytes.fromhex(asked["calls"]))
    except OSError as error:
        sys.exit(f"landlock: {error}")
    words = sys.argv[2:]
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.stderr.write(f"setpriv: failed to execute {words[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
