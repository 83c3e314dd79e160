"""A bucket of an object storage by its address; every failure is told without what could be a key.

`s3://bucket/prefix` is Amazon S3 or whatever speaks its language, `gs://` and `az://` are the stores of
Google and Azure. Keys come by the usual chain: variables of the environment, a web identity, the static
keys of a profile in `~/.aws`, the container's or the machine's role. `AWS_ENDPOINT_URL` names another
server, `AWS_REGION` its region; `AWS_ALLOW_HTTP=true` lets it be one without encryption.

One number, `patience`, bounds the time in which lost connections and answers of a busy server (5xx) are
tried again. What the library says of a failure may quote headers and answers, so none of its words are
passed on: only the status, the server's own code for it, and the kind of a broken connection.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store, from_url

from holdfast.errors import StoreError, UsageError

if TYPE_CHECKING:
    from obstore.store import S3Config  # only there for type checkers

_PART = 8 * 1024 * 1024  # bytes of one request of a file
_PARTS_AT_ONCE = 2
_PIECE = 1024 * 1024
_PAGE = 1000  # objects in one answer to a listing
_SCHEMES = frozenset({"s3", "gs", "az", "abfs", "abfss"})
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_BROKEN = (
    ("dns error", "its name is not known"),
    ("connection refused", "connection refused"),
    ("connectionrefused", "connection refused"),
    ("certificate", "its certificate is not trusted"),
    ("timedout", "no answer in time"),
    ("timed out", "no answer in time"),
)
_NO_KEY = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
_SET_KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_FIRST_WAIT, _LONGEST_WAIT = timedelta(milliseconds=100), timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Found:
    """An object that is there; `tag` changes with its bytes."""

    size: int
    modified: float  # seconds, by the server's clock
    tag: str


class Bucket:
    """The objects below one address."""

    def __init__(self, location: str, patience: float) -> None:
        try:
            parts = urlsplit(location)
        except ValueError:
            raise _no_place(location) from None
        if parts.password is not None or (parts.username and parts.scheme in {"s3", "gs"}):
            shown = f"{parts.scheme}://…@{parts.hostname}"
            raise UsageError(f"'{shown}' has a key in it", hint="keys come by AWS_* variables")
        if parts.scheme not in _SCHEMES or not parts.netloc or parts.query or parts.fragment:
            raise _no_place(location)
        self._location = location
        config = _s3_config(os.environ) if parts.scheme == "s3" else {}
        self._server = _without_user(config.get("endpoint", ""))
        plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
        if self._server.startswith("http://") and not plain:
            raise UsageError(
                f"the server '{self._server}' would be asked without encryption",
                hint="AWS_ALLOW_HTTP=true allows that",
            )
        wait = timedelta(seconds=patience)
        try:
            self._store = from_url(
                location,
                config=cast("S3Config", config),
                client_options={
                    "allow_http": plain,
                    "connect_timeout": min(wait, _LONGEST_WAIT),
                    "read_timeout": 2 * wait,
                    "timeout": timedelta(hours=12),  # of one whole answer, however large and slow
                },
                retry_config={
                    "max_retries": 100,
                    "retry_timeout": wait,
                    "backoff": {"init_backoff": _FIRST_WAIT, "max_backoff": _LONGEST_WAIT},
                },
            )
        except (BaseError, ValueError):
            raise _no_place(location) from None
        if isinstance(self._store, S3Store) and not self._server:
            region = self._store.config.get("region", "us-east-1")
            self._server = f"https://s3.{region}.amazonaws.com"

    def create(self, key: str, body: bytes) -> bool:
        """Put an object that is not there; False if it is."""
        try:
            obstore.put(self._store, key, body, mode="create")
        except AlreadyExistsError:
            return False
        except NotImplementedError:  # a server that knows no conditions
            if self.find(key) is not None:
                return False
            self.put(key, body)
        except (BaseError, OSError) as error:
            raise self._told(error) from None
        return True

    def put(self, key: str, body: bytes | IO[bytes]) -> None:
        """Put an object, whatever is there; a file is sent in parts."""
        with self._telling():
            obstore.put(
                self._store,
                key,
                body,
                use_multipart=not isinstance(body, bytes),
                chunk_size=_PART,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def find(self, key: str) -> Found | None:
        """What is known of an object; None if it is not there."""
        with self._telling():
            try:
                return _found(obstore.head(self._store, key))
            except FileNotFoundError:
                return None

    def read(self, key: str) -> tuple[Found, Iterator[bytes]] | None:
        """An object and its bytes in pieces; None if it is not there."""
        with self._telling():
            try:
                got = obstore.get(self._store, key)
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None
        return _found(got.meta), self._pieces(got)

    def _pieces(self, got: obstore.GetResult) -> Iterator[bytes]:
        with self._telling():
            for piece in got.stream(_PIECE):
                yield bytes(piece)

    def listed(self, folder: str | None = None) -> Iterator[tuple[str, Found]]:
        """All objects below a folder, page by page."""
        with self._telling():
            for page in obstore.list(self._store, folder, chunk_size=_PAGE):
                for meta in page:
                    yield meta["path"], _found(meta)

    def copy(self, key: str, to: str) -> None:
        """Copy an object, if it is there."""
        with self._telling(), contextlib.suppress(FileNotFoundError):
            obstore.copy(self._store, key, to)

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        with self._telling(), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise self._told(error) from None

    def _told(self, error: Exception) -> StoreError:
        said = str(error)
        where = f"'{self._location}'" + (f" at '{self._server}'" if self._server else "")
        status, code = _STATUS.search(said), _CODE.search(said)
        answer = " ".join(found[1] for found in (status, code) if found)
        if any(address in said for address in _NO_KEY):
            return StoreError(f"there are no credentials for {where}", hint=_SET_KEYS)
        if answer.startswith(("401", "403")):
            return StoreError(
                f"{where} refused the credentials ({answer})",
                hint=f"{_SET_KEYS} to one that may list, read, write and delete there",
            )
        if answer.startswith("404"):
            return StoreError(f"there is no bucket for {where} ({answer})", hint="create it first")
        if answer:
            return StoreError(f"{where} cannot serve contents ({answer})", hint="try again later")
        why = next((words for sign, words in _BROKEN if sign in said.lower()), "no connection")
        return StoreError(
            f"{where} cannot be reached: {why}", hint="check AWS_ENDPOINT_URL and the network"
        )


def _no_place(location: str) -> UsageError:
    return UsageError(f"'{location}' is no place for contents", hint="s3://BUCKET/PREFIX")


def _found(meta: obstore.ObjectMeta) -> Found:
    moment = meta["last_modified"].timestamp()
    return Found(meta["size"], moment, meta["e_tag"] or f"{moment} {meta['size']}")


def _without_user(endpoint: str) -> str:
    """The address of a server without what may stand before its name."""
    parts = urlsplit(endpoint)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _s3_config(environment: Mapping[str, str]) -> dict[str, str]:
    """What the library does not find by itself: the server's address, and a profile."""
    own = {} if "AWS_ACCESS_KEY_ID" in environment else _profile(environment)
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        if environment.get(name):
            return {**own, "endpoint": environment[name]}
    return own


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """The static keys of a person's profile; one that was asked for by name must have them."""
    name = environment.get("AWS_PROFILE", "default")
    files = configparser.RawConfigParser()
    for variable, usual in (
        ("AWS_CONFIG_FILE", "~/.aws/config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ):
        with contextlib.suppress(configparser.Error, UnicodeDecodeError):
            files.read(os.path.expanduser(environment.get(variable, usual)), encoding="utf-8")
    given: dict[str, str] = {}
    for section in (f"profile {name}", name):
        given |= dict(files[section]) if files.has_section(section) else {}
    if "AWS_PROFILE" in environment and "aws_access_key_id" not in given:
        raise UsageError(
            f"the profile '{name}' has no static keys",
            hint=f'eval "$(aws configure export-credentials --profile {name} --format env)"',
        )
    names = {
        "aws_access_key_id": "access_key_id",
        "aws_secret_access_key": "secret_access_key",
        "aws_session_token": "session_token",
        "endpoint_url": "endpoint",
    }
    if "AWS_REGION" not in environment and "AWS_DEFAULT_REGION" not in environment:
        names["region"] = "region"
    return {ours: given[theirs] for theirs, ours in names.items() if theirs in given}
