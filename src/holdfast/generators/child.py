"""The child process of Python steps: reads one call at a time, answers it, waits for the next.

Started by its path and with the standard library only, so that it starts fast. A frame is a length
in four bytes, most significant first, and that many bytes of JSON. Frames use private descriptors:
what the function prints goes to the log file that the call names, what it reads is empty.

    call    target, root, folder, env, values {name: value}, files {name: need},
            needs [[name, form, path]], subject [form, path] or null, as_json, log, result
    answer  state: begun | stale | refused, again, message
            state: done | failed, again, message; only after `begun`

`subject` is given to the first parameter, whatever its name, and others get the values and needs that
are named like them. `result` is the path to which the
result is written. `stale` says that a source file changed since this process loaded it; as long as
`begun` was not said, nothing was called. `refused` says that the machine had no room for the thread that
reads calls; it is the first frame of a process or none, for what comes later a function may have written.
`again` is false if this process should not be used again: something of the call still runs in it, or it
is not sure which source it loaded.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import queue
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable
from importlib import machinery
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import PathEntryFinder  # 20 ms, only for the type

_LENGTH = struct.Struct(">I")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
_TAIL = 8 * 1024
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_SETTLED_NS = 100_000_000  # a file younger than this could change without its stamp telling

_REST, _UNNAMED = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY

Stat = tuple[int, int, int]


class CallError(Exception):
    """The function cannot be called with what there is."""


# --- arguments and results, the same for functions in the engine's process ----------------------


def parameters(
    function: Callable[..., object], values: Collection[str], needs: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """For each parameter that takes the artifact of a need: the need, and how it wants it.

    How: `bytes` and `str` as annotated, text without annotation, `Path` the file or directory
    itself, any other annotation the value that the artifact is as JSON, or its text if it is none.
    An artifact of several files is always a `Path`. A value of `with` goes before a need of the
    same name. `**` takes every need that is not named, as text.
    """
    named = {_parameter_of(need): need for need in needs}
    taken: dict[str, tuple[str, str]] = {}
    takes_any, used = False, 0
    for name, kind, how, must in _accepted(function):
        if kind is _REST:
            takes_any = True
        elif kind is _UNNAMED:
            raise CallError(f"the parameter '{name}' cannot be given by name")
        elif name in values:
            used += 1
        elif name in named:
            taken[name] = (named[name], how)
        elif must:
            raise CallError(f"the parameter '{name}' is neither a value of 'with' nor a need")
    if takes_any:
        for name, need in named.items():
            if name not in taken and name not in values:
                taken[name] = (need, "text")
    elif used < len(values):
        known = {name for name, *_ in _accepted(function)}
        free = ", ".join(repr(name) for name in sorted(values) if name not in known)
        raise CallError(f"there is no parameter for {free}")
    return taken


def _parameter_of(need: str) -> str:
    return need if need.isidentifier() else need.replace("-", "_").replace(".", "_")


@functools.lru_cache(maxsize=256)
def _accepted(
    function: Callable[..., object],
) -> tuple[tuple[str, inspect._ParameterKind, str, bool], ...]:
    """What a function takes: name, kind, how it wants an artifact, and whether it must be given."""
    return tuple(
        (name, parameter.kind, manner(parameter.annotation), parameter.default is parameter.empty)
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_POSITIONAL
    )


def signature(function: Callable[..., object]) -> inspect.Signature:
    """The signature, without looking up the names in its annotations: some are for type checkers only."""
    if sys.version_info >= (3, 14):
        form = importlib.import_module("annotationlib").Format.STRING
        return inspect.signature(function, annotation_format=form)
    return inspect.signature(function)


def manner(annotation: object) -> str:
    """How a parameter wants an artifact: `bytes`, `text`, `path` or `json`."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if annotation is inspect.Parameter.empty or name == "str":
        return "text"
    if name == "bytes":
        return "bytes"
    return "path" if name in {"Path", "pathlib.Path"} else "json"


def decoded(how: str, content: bytes, need: str) -> object:
    """An artifact as `bytes`, `text` or `json`."""
    if how == "bytes":
        return content
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise CallError(f"the artifact of '{need}' is not UTF-8; annotate it as bytes") from error
    if how == "text":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def encoded(result: object) -> bytes:
    """A result as an artifact: text as UTF-8, bytes as they are, anything else as sorted JSON."""
    if isinstance(result, bytes):
        return result
    if isinstance(result, str):
        return result.encode()
    return as_json(result)


def as_json(result: object) -> bytes:
    try:
        text = json.dumps(result, ensure_ascii=False, sort_keys=True, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CallError(
            f"the result of type '{type(result).__name__}' is no JSON: {error}"
        ) from error


def story(error: BaseException) -> str:
    """The end of a traceback, from the first frame that is not of this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    return text.encode("utf-8", "replace")[-_TAIL:].decode("utf-8", "replace")


# --- the process --------------------------------------------------------------------------------


def main() -> None:
    """Serve calls until the pipe of frames is closed."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    _adopt_orphans()
    calls: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    try:
        threading.Thread(target=_listen, args=(incoming, calls), daemon=True).start()
    except RuntimeError as error:  # no step is to blame
        _answer(outgoing, {"state": "refused", "message": str(error), "again": False})
        while os.read(incoming, 2**16):
            pass  # a large call is on its way: a broken pipe would hide the answer
        return
    seen: dict[str, Stat] = {}
    while True:
        call = calls.get()
        if any(_stat(path) != stat for path, stat in seen.items()):
            _answer(outgoing, {"state": "stale", "again": False})
            continue
        _answer(outgoing, {"state": "begun", "again": False})
        _answer(outgoing, _serve(call, seen))


def _listen(incoming: int, calls: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Read frames; when the engine is gone, so is this process, whatever it does just then."""
    with os.fdopen(incoming, "rb") as stream:
        while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
            calls.put(json.loads(stream.read(_LENGTH.unpack(head)[0])))
    os._exit(0)


def _answer(descriptor: int, answer: dict[str, Any]) -> None:
    frame = json.dumps(answer).encode()
    content = _LENGTH.pack(len(frame)) + frame
    while content:
        content = content[os.write(descriptor, content) :]


def _serve(call: dict[str, Any], seen: dict[str, Stat]) -> dict[str, Any]:
    began, threads = time.time_ns() - _SETTLED_NS, _threads()
    answer: dict[str, Any] = {"state": "done"}
    process = os.getpid()
    try:
        _enter(call)
        content = _result(call)
        if os.getpid() == process:
            Path(call["result"]).write_bytes(content)
    except CallError as error:
        answer = {"state": "failed", "message": f"'{call['target']}': {error}"}
    except BaseException as error:  # noqa: BLE001 - the answer is that it was raised
        answer = {"state": "failed", "message": story(error)}
    finally:
        _quiet()
    if os.getpid() != process:  # the function forked and its copy came back: only one may answer
        os._exit(0)
    loaded = _loaded(call["root"])
    # A file written during the call, or just before, may not be what was loaded from it.
    is_sure = all(stat[0] < began for path, stat in loaded.items() if path not in seen)
    seen.update({path: stat for path, stat in loaded.items() if path not in seen})
    answer["again"] = is_sure and _threads() <= threads and not _has_children()
    return answer


def _threads() -> int:
    """How many threads there are, also those that Python does not count."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _enter(call: dict[str, Any]) -> None:
    """Put this process where the call belongs: path, environment, folder, log."""
    _put_on_path(call["root"])
    os.environ.clear()
    os.environ.update(call["env"])
    os.chdir(call["folder"])
    importlib.invalidate_caches()
    if "tempfile" in sys.modules:
        vars(sys.modules["tempfile"])["tempdir"] = None  # or the TMPDIR of an earlier call stays
    with open(call["log"], "ab", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def _result(call: dict[str, Any]) -> bytes:
    function = _function(call["target"])
    needs = {name: (form, path) for name, form, path in call["needs"]}
    arguments = {**call["values"], **_files(function, call["files"], needs)}
    if call["subject"] is None:
        for name, (need, how) in parameters(function, arguments, needs).items():
            arguments[name] = _artifact(how, *needs[need], need)
        result = function(**arguments)
    else:
        subject = _subject(function, *call["subject"])
        result = function(subject, **_beside(function, arguments, needs))
    if inspect.isawaitable(result):
        result = importlib.import_module("asyncio").run(_awaited(result))
    return as_json(result) if call["as_json"] else encoded(result)


def _files(
    function: Callable[..., object], files: dict[str, str], needs: dict[str, tuple[str, str]]
) -> dict[str, object]:
    """The files of needs for the parameters that want one; None for a need that the step goes without."""
    wanted = {name: how for name, _, how, _ in _accepted(function) if how in {"bytes", "path"}}
    return {
        name: _artifact(wanted[name], *needs[need], need) if need in needs else None
        for name, need in files.items()
        if name in wanted
    }


def _function(target: str) -> Callable[..., object]:
    module, _, name = target.partition(":")
    if not module or not name:
        raise CallError("a python step names 'module:function'")
    found: Any = _module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise CallError(f"the module '{module}' has no function '{name}'")
    # A decorated function says how an engine calls it: with JSON, for JSON.
    return getattr(found, "__holdfast_call__", found)  # type: ignore[no-any-return]  # found by name in a module of the user


def _module(name: str) -> ModuleType:
    """A module; of a program that runs its plan, as far as it was when it began to."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        module = getattr(error, "__holdfast_module__", None)
        if module is None or module.__name__ != name:
            raise
        sys.modules[name] = module
        return module  # type: ignore[no-any-return]  # what was imported


async def _awaited(result: Any) -> object:  # noqa: ANN401 - the result of any function
    return await result


def _artifact(how: str, form: str, path: str, need: str) -> object:
    if how == "path" or form == "tree":
        return Path(path)
    return decoded(how, Path(path).read_bytes(), need)


def _subject(function: Callable[..., object], form: str, path: str) -> object:
    first = next(iter(signature(function).parameters.values()), None)
    if first is None:
        raise CallError("the function takes no artifact")
    return _artifact(manner(first.annotation), form, path, "step")


def _beside(
    function: Callable[..., object], values: dict[str, object], needs: dict[str, tuple[str, str]]
) -> dict[str, object]:
    """What a guard asks for beside the artifact: values and needs of its step, by their names."""
    named = {_parameter_of(need): need for need in needs}
    found: dict[str, object] = {}
    for name, kind, how, must in _accepted(function)[1:]:
        if kind is _REST:
            continue
        if name in values:
            found[name] = values[name]
        elif name in named:
            found[name] = _artifact(how, *needs[named[name]], named[name])
        elif must:
            raise CallError(f"the parameter '{name}' is neither a value nor a need of the step")
    return found


def _put_on_path(root: str) -> None:
    """Put the project after the standard library and before what is installed."""
    if root in sys.path:
        return
    ends = ("site-packages", "dist-packages")
    places = (at for at, path in enumerate(sys.path) if path.endswith(ends))
    sys.path.insert(next(places, len(sys.path)), root)
    sys.path_hooks.insert(0, functools.partial(_finder, os.path.realpath(root)))
    sys.path_importer_cache.clear()


class _Source(machinery.SourceFileLoader):
    """Compiles what a file holds now. Bytecode beside it is matched by its second and size alone."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_find = machinery.FileFinder.path_hook(
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (_Source, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
)


def _finder(root: str, path: str) -> PathEntryFinder:
    """Finds the modules of the project; what is installed is left to the usual finders."""
    place = os.path.realpath(path)
    if (place + os.sep).startswith(root + os.sep) and "site-packages" not in place.split(os.sep):
        return _find(path)
    raise ImportError(path)


def _quiet() -> None:
    """Finish what was printed, then send what comes late to nowhere."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.close(nothing)


def _loaded(root: str) -> dict[str, Stat]:
    """The project's source files that are loaded in this process, as they are now."""
    inside = os.path.realpath(root) + os.sep
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    paths = {_real(file) for file in files if isinstance(file, str)}
    return {path: stat for path in paths if path.startswith(inside) and (stat := _stat(path))}


@functools.cache  # a module stays where it was loaded from, and there are hundreds of them
def _real(path: str) -> str:
    return os.path.realpath(path)


def _stat(path: str) -> Stat | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _adopt_orphans() -> None:
    """Keep descendants whose parents ended as children of this process."""
    if sys.platform == "linux":
        libc = importlib.import_module("ctypes").CDLL(None)
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)


def _has_children() -> bool:
    """Whether a process that the call started is still there; yes if this cannot be told."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    try:
        tasks = list(Path("/proc/self/task").iterdir())
        return any((task / "children").read_bytes().strip() for task in tasks)
    except OSError:
        return True


if __name__ == "__main__":
    main()
