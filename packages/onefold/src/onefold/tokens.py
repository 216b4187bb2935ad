"""Who may speak as whom: a file of tokens, of which it holds only the hashes.

A token is an id and a secret of 256 random bits. The file has, for each id, a name, what the name
may do, and the SHA-256 of the secret. A slow or salted hash would add nothing: those keep people's
passwords, which are few enough to be tried one after the other, and 2^256 secrets are not; and the
server computes this one at every call.

The file is replaced as a whole (written beside, synced, renamed), so whoever reads it sees it
before a change or after. A server looks at each call whether it has changed, hence a token that was
revoked is refused from the next call on.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from onefold.checks import show, wrong_with_worker
from onefold.errors import InvalidInput, StoreError, Unauthenticated

__all__ = ["Caller", "Role", "Token", "TokenFile", "read_tokens", "revoke", "token_for"]

_FORMAT = "onefold tokens"
_VERSION = 1
_SECRET_BYTES = 32
_FILE_BYTES_MAX = 64 << 20
_FORM = re.compile(r"([0-9a-f]{16})\.([A-Za-z0-9_-]{43})")
_HASH = re.compile("[0-9a-f]{64}")
_NOBODYS_HASH = "0" * 64
_DAY_SECONDS = 86_400.0

_ASK = "ask whoever runs the server for one (`onefold token new`), and give it to connect() as "
_HOW = f"{_ASK}Credentials(token=...), or in ONEFOLD_TOKEN"


class Role(StrEnum):
    """What the holder of a token may do."""

    WORKER = "worker"
    """Everything that its worker does, as that worker only."""
    OBSERVER = "observer"
    """Read the status of the run, and nothing else."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call, as a token has shown."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Token:
    """What a file has of a token.

    Args:
        id: Names it; no secret.
        name: Whose it is.
        role: What it is good for.
        sha256: Of its secret.
        created_at: In Unix seconds.
        expires_at: In Unix seconds; None for never.
    """

    id: str
    name: str
    role: Role
    sha256: str
    created_at: float
    expires_at: float | None


def token_for(
    path: Path, name: str, role: Role = Role.WORKER, *, expires_in_days: float | None = None
) -> tuple[str, Token]:
    """Make a token, add it to a file, which is made if it is not there, and return both.

    The secret is known to nobody but the caller.

    Raises:
        InvalidInput: This is no name, no number of days, or no file of tokens.
        StoreError: The file cannot be written.
    """
    wrong = wrong_with_worker(name)
    if wrong is not None:
        raise InvalidInput(wrong)
    if expires_in_days is not None and not 0 < expires_in_days < 1e6:
        raise InvalidInput(
            f"a token expires in more than 0 days and less than a million, not {expires_in_days}; "
            "leave it out for one that never does"
        )
    now = time.time()
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    token = Token(
        id=secrets.token_hex(8),
        name=name,
        role=role,
        sha256=_hash_of(secret),
        created_at=now,
        expires_at=None if expires_in_days is None else now + expires_in_days * _DAY_SECONDS,
    )
    with _changing(path):
        _write(path, (*(read_tokens(path) if path.exists() else ()), token))
    return f"{token.id}.{secret}", token


def revoke(path: Path, name_or_id: str) -> tuple[Token, ...]:
    """Remove the tokens of a name, and the token of that id, from a file; which they were.

    Raises:
        InvalidInput: There is none, or this is no file of tokens.
        StoreError: The file cannot be written.
    """
    with _changing(path):
        tokens = read_tokens(path)
        gone = tuple(token for token in tokens if name_or_id in (token.name, token.id))
        if not gone:
            raise InvalidInput(
                f"{path} has no token of the name or id {name_or_id!r}; "
                "`onefold token list` shows what it has"
            )
        _write(path, tuple(token for token in tokens if token not in gone))
    return gone


def read_tokens(path: Path) -> tuple[Token, ...]:
    """The tokens in a file.

    Raises:
        InvalidInput: It is not there, cannot be read, or is none; the message says where.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no file of tokens {path}: make it with "
            f"`onefold token new WORKER --tokens {path}`"
        ) from None
    except OSError as error:
        raise InvalidInput(f"the tokens {path} cannot be read: {error.strerror}") from None
    if len(data) > _FILE_BYTES_MAX:
        raise InvalidInput(f"{path} has more than {_FILE_BYTES_MAX} bytes, so it has no tokens")
    try:
        return _tokens_of(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is no file of tokens: {error}; give the one that `onefold token new` has "
            "made, or if this was it put a copy back"
        ) from None


class TokenFile:
    """The tokens in a file that others change. Several threads may use it.

    Args:
        path: The file; read when it is first needed, and when it has changed.
        clock: Gives the time in Unix seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path.absolute()  # wherever this process goes
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._tokens: Mapping[str, Token] = {}

    def load(self) -> Mapping[str, Token]:
        """The tokens by id; the file is read again if it has changed.

        Raises:
            InvalidInput: It cannot be used; nobody is known until it can.
        """
        with self._lock:
            try:
                stamp = _stamp_of(self._path)
            except OSError:
                stamp = None  # reading says what is wrong
            if stamp is None or stamp != self._stamp:
                # A change while it is read changes the stamp, too, and is seen at the next call.
                self._stamp = None
                self._tokens = {token.id: token for token in read_tokens(self._path)}
                self._stamp = stamp
            return self._tokens

    def caller(self, text: str | None) -> Caller:
        """Whose token this is.

        Raises:
            Unauthenticated: It is none, unknown, revoked or expired.
            InvalidInput: The file cannot be used.
        """
        tokens = self.load()
        if text is None:
            raise Unauthenticated(f"this server answers only who has a token: {_HOW}")
        form = _FORM.fullmatch(text)
        if form is None:
            raise Unauthenticated(f"what came as a token has not the form of one: {_HOW}")
        token = tokens.get(form[1])
        # An id is no secret, but a comparison costs nothing and leaves no question.
        known = _NOBODYS_HASH if token is None else token.sha256
        is_right = hmac.compare_digest(known, _hash_of(form[2]))
        if token is None or not is_right:
            raise Unauthenticated(f"the token {form[1]} is not known here, or revoked: {_HOW}")
        if token.expires_at is not None and self._clock() >= token.expires_at:
            raise Unauthenticated(f"the token {token.id} of {token.name!r} has expired: {_HOW}")
        return Caller(token.name, token.role)


def _hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _stamp_of(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _tokens_of(values: object) -> tuple[Token, ...]:
    """The tokens that JSON values stand for; ValueError says what is wrong with them."""
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise ValueError(f'expected an object with "format": "{_FORMAT}"')
    version = values.get("version")
    is_known = type(version) is int and version == _VERSION  # True and 1.0 are equal to 1
    if not is_known or values.keys() != {"format", "version", "tokens"}:
        raise ValueError(
            f'expected "version": {_VERSION} and "tokens" beside the format, not '
            f"{show(version)} and {sorted(values)}"
        )
    listed = values["tokens"]
    if not isinstance(listed, list):
        raise ValueError(f'"tokens" is a list, not {show(listed)}')  # noqa: TRY004 - JSON's, not ours
    tokens = tuple(_token_of(index, value) for index, value in enumerate(listed))
    if len({token.id for token in tokens}) != len(tokens):
        raise ValueError("two tokens have the same id")
    return tokens


def _token_of(index: int, value: object) -> Token:
    names = set(Token.__dataclass_fields__)
    if not isinstance(value, dict) or value.keys() != names:
        raise ValueError(f"token {index} is an object of {sorted(names)}, not {show(value)}")
    checks = {
        "id": isinstance(value["id"], str) and re.fullmatch("[0-9a-f]{16}", value["id"]),
        "name": wrong_with_worker(value["name"]) is None,
        "role": value["role"] in list(Role),
        "sha256": isinstance(value["sha256"], str) and _HASH.fullmatch(value["sha256"]),
        "created_at": _is_time(value["created_at"]),
        "expires_at": value["expires_at"] is None or _is_time(value["expires_at"]),
    }
    for name, is_right in checks.items():
        if not is_right:
            raise ValueError(f"{name} of token {index} cannot be {show(value[name])}")
    return Token(**{**value, "role": Role(value["role"])})


def _is_time(value: object) -> bool:
    # Comparisons with NaN are false, so that one is none either.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Let nobody else change the file meanwhile; the lock is on its directory, so leaves nothing.

    Raises:
        StoreError: The directory is not there.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StoreError(f"the tokens {path} cannot be changed: {error.strerror}") from None
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
        os.fsync(directory)  # so that what is revoked stays revoked
    finally:
        os.close(directory)


def _write(path: Path, tokens: tuple[Token, ...]) -> None:
    values = {
        "format": _FORMAT,
        "version": _VERSION,
        "tokens": [asdict(token) for token in tokens],
    }
    beside = None
    path = path.resolve()  # of a link the file, which is what servers read
    try:
        # Made with mode 0600: who may write it decides who may push.
        descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            json.dump(values, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(beside).rename(path)
    except OSError as error:
        raise StoreError(f"the tokens {path} cannot be written: {error.strerror}") from None
    finally:
        if beside is not None:
            with suppress(OSError):
                Path(beside).unlink(missing_ok=True)
