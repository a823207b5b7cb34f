"""Changing one key of a configuration file, keeping everything else in it as it is.

Separate from `load` because only this needs tomlkit, which keeps comments and order.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from esnode.config.keys import KEYS
from esnode.config.load import ConfigError, load, unknown_key
from esnode.config.schema import Key
from esnode.config.values import Address, BadValue, without_credentials


def set_keys(file: Path, changes: dict[str, str]) -> None:
    """Write `changes` (key name to text as a flag would take it) into `file`, made if absent.

    The new text is checked as a whole before it replaces the old, in one rename, with the old
    file's mode and owner; a new file is 0600, because it may come to hold a token.

    Raises:
        ConfigError: unknown key, bad value, a file that is not TOML, or that cannot be written.
    """
    try:
        document = tomlkit.parse(_read(file))
    except OSError as error:
        raise ConfigError([f"{file}: cannot be edited: {error.strerror}"]) from None
    except (ValueError, TOMLKitError, RecursionError) as error:
        raise ConfigError([f"{file}: cannot be edited: {error}"]) from None
    for name, value in changes.items():
        _set(document, name, value)
    _replace(file, tomlkit.dumps(document))


def _read(file: Path) -> str:
    """The text of a regular file, empty when there is none; a pipe would keep us for ever.

    Raises:
        ConfigError: it is no regular file.
        OSError, UnicodeDecodeError: it cannot be read.
    """
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError:
        return ""
    if not stat.S_ISREG(mode):
        raise ConfigError([f"{file}: cannot be edited: it is not a regular file"])
    return file.read_text(encoding="utf-8-sig")  # with or without a byte order mark


def _set(document: tomlkit.TOMLDocument, name: str, text: str) -> None:
    for key in KEYS.values():
        if name in dict(key.file_aliases):
            raise ConfigError([f"{name}: is an older name; set {key.name} instead"])
    if name not in KEYS:
        raise ConfigError([unknown_key(name, KEYS)])
    key = KEYS[name]
    try:
        value = _as_toml(key, text)
    except BadValue as bad:
        shown = "the value" if key.is_secret else without_credentials(repr(text))
        raise ConfigError([f"{name}: {shown} {bad}"]) from None
    table_name, _, inner = name.rpartition(".")
    target: tomlkit.TOMLDocument | Table = document
    if table_name:
        table = document.setdefault(table_name, tomlkit.table())
        if not isinstance(table, Table):
            raise ConfigError([f"{table_name}: is not a table in this file; make it one first"])
        target = table
    for alias, _ in key.file_aliases:
        target.pop(alias, None)
    target[inner] = value


def _as_toml(key: Key, text: str) -> object:
    """What the file should hold: numbers and booleans as such, the rest as it was written."""
    match value := key.parse(text):
        case bool() | int():
            return value
        case float():
            try:
                number = float(text)
            except ValueError:  # a duration: keep its unit
                return text.strip()
            return int(number) if number.is_integer() else number
        case str():
            return value
        case Address():
            return str(value)
        case tuple() if key.name == "tags":
            return dict(value)
        case tuple():
            return list(value)
        case _:
            return str(value)


def _replace(file: Path, text: str) -> None:
    try:
        old = file.stat() if file.exists() else None
        handle, name = tempfile.mkstemp(dir=file.resolve().parent, prefix=f".{file.name}.")
    except OSError as error:
        raise ConfigError([f"{file}: cannot be written: {error.strerror}"]) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        load(flags={}, environment={}, file=temporary)
        if old is not None:
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                # An agent that does not run as root must still be able to read its file.
                with suppress(PermissionError):
                    os.chown(temporary, old.st_uid, old.st_gid)
            temporary.chmod(old.st_mode & 0o777)
        temporary.replace(file.resolve())
    except ConfigError as error:
        raise ConfigError(
            [problem.replace(str(temporary), str(file)) for problem in error.problems]
        ) from None
    except OSError as error:
        raise ConfigError([f"{file}: cannot be written: {error.strerror}"]) from None
    finally:
        temporary.unlink(missing_ok=True)
