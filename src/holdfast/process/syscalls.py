"""Which calls of the kernel a confined command may make: a filter, in the kernel's own byte code.

Mounts and namespaces hold whatever has a path, a process number or an internet address. This holds what
has none of them: the keys of whoever started the command, sockets that no network namespace separates,
and namespaces in which the command would be root again. Also refused are parts of the kernel that
ordinary work has no need of and that were ways out of sandboxes before. Calls that need privileges are
not named: a command has none, and without namespaces of its own it gets none.

A refused call fails as it does on a system without that part, so programs do without. Calls that are
newer than this list, and those of another architecture (programs of 32 bits), are unknown here.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
import struct
from typing import NamedTuple


class _Machine(NamedTuple):
    """An architecture by the kernel's number, and the numbers of its calls."""

    number: int
    socket: int
    clone: int
    refused: tuple[int, ...]


# The same on every architecture: io_uring (it makes sockets without asking us), open_tree, move_mount,
# fsopen, fsconfig, fsmount, fspick, mount_setattr, open_tree_attr.
_COMMON = (425, 426, 427, 428, 429, 430, 431, 432, 433, 442, 467)
_CLONE3, _LAST = 435, 469
# add_key, request_key, keyctl; unshare, setns; mount, umount2, pivot_root; bpf, perf_event_open,
# userfaultfd, open_by_handle_at, syslog, quotactl
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        41,
        56,
        (248, 249, 250, 272, 308, 165, 166, 155, 321, 298, 323, 304, 103, 179),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        198,
        220,
        (217, 218, 219, 97, 268, 40, 39, 41, 280, 241, 282, 265, 116, 60),
    ),
}
_NETLINK = 16  # from linux/socket.h; other systems have no name for it
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, _NETLINK)
_NEW_NAMESPACES = 0x7E020000  # every flag of clone that makes one

# From linux/filter.h, linux/seccomp.h: where the call is described, and what can be done with it.
_CALL, _ARCHITECTURE, _FIRST_WORD = 0, 4, 16
_LOAD, _EQUAL, _GREATER, _ANY_OF, _ANSWER = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_WIDE = 8  # bytes of a pointer


@functools.cache
def call_filter() -> bytes:
    """The filter for this machine as `struct sock_filter[]`; empty where none is known."""
    machine = _MACHINES.get(os.uname().machine)
    if machine is None or struct.calcsize("P") != _WIDE:
        return b""
    missing, unknown = _answer(errno.ENOSYS), _answer(errno.EAFNOSUPPORT)
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        *_unless(machine.number, missing),
        _line(_LOAD, _CALL),
        *_if(_GREATER, _LAST, [missing]),
        *_if(_EQUAL, _CLONE3, [missing]),  # its flags cannot be seen; libraries then take `clone`
    ]
    for number in (*_COMMON, *machine.refused):
        lines += _if(_EQUAL, number, [_answer(errno.EPERM)])
    spawning = _if(_ANY_OF, _NEW_NAMESPACES, [_answer(errno.EPERM)])
    lines += _if(_EQUAL, machine.clone, [_line(_LOAD, _FIRST_WORD), *spawning, _answer()])
    known = [line for family in _FAMILIES for line in _if(_EQUAL, family, [_answer()])]
    lines += _if(_EQUAL, machine.socket, [_line(_LOAD, _FIRST_WORD), *known, unknown])
    return b"".join([*lines, _answer()])


def _if(test: int, value: int, then: list[bytes]) -> list[bytes]:
    """Lines for when what was loaded passes a test; they are jumped over otherwise."""
    return [_line(test, value, otherwise=len(then)), *then]


def _unless(value: int, then: bytes) -> list[bytes]:
    return [_line(_EQUAL, value, then=1), then]


def _answer(number: int = 0) -> bytes:
    """Let the call fail with an error, or let it through."""
    return _line(_ANSWER, _FAIL | number if number else _ALLOW)


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
