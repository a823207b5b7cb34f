"""The folders that hold keys and certificates: the one file of this room that touches a disk.

Its own file because each function is a promise about who may read a key and what a crash leaves. A
folder appears whole or not at all: it is filled under another name and renamed. A file is replaced
the same way. Folders are 0700, files 0600, owned by whoever reads them or by root; anything else is
refused in one line rather than mended, since the key may be known to others already. It must not
know what the files mean: it moves bytes.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from cluster.ids import ClusterName

AUTHORITY_KEY = "authority.key"
AUTHORITY_CERTIFICATE = "authority.crt"
OPERATOR_KEY = "operator.key"
OPERATOR_CERTIFICATE = "operator.crt"
NODE_KEY = "node.key"
NODE_CHAIN = "node.crt"
"""The node's certificate, then the invite's that signed it: what TLS sends."""
SEEDS = "seeds"
"""One HOST:PORT a line; of a node, or of a cluster's folder for the next invite."""

FOLDER_MODE = 0o700
FILE_MODE = 0o600
FILE_BYTES_MAX = 64 * 1024


class IdentityUnusable(Exception):
    """A folder or file cannot be used. The text is one line: what, where, and what to do."""


def authority_folder(config_home: Path, name: ClusterName) -> Path:
    """Where an operator keeps a cluster's keys; `config_home` is mostly ``~/.config``."""
    return config_home / "esnode" / name


def node_folder(state_directory: Path) -> Path:
    """Where a node keeps its key and certificates."""
    return state_directory / "identity"


def create_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder with these files; on disk when it returns.

    Raises:
        IdentityUnusable: it is there already, or cannot be written. Nothing has changed.
    """
    with _lines_for(folder):
        folder.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        filling = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for name, content in files.items():
                _write_new(filling / name, content)
            sync_folder(filling)
            _rename_new(filling, folder)
        except BaseException:
            _discard(filling, files)
            raise
        sync_folder(folder.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Put this content in the place of the file's; after a crash it is one or the other.

    Raises:
        IdentityUnusable: it cannot be written. Nothing has changed.
    """
    aside = path.with_name(f".{path.name}.new")
    with _lines_for(path):
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()  # of a run that was killed
        try:
            _write_new(aside, content)
            aside.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise
        sync_folder(path.parent)


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of it, however many calls that takes.

    Raises:
        OSError: a part of it may have been written.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_file(path: Path, *, owner: Callable[[], int] = os.geteuid) -> bytes:
    """The content of a file that nobody else can read.

    Raises:
        IdentityUnusable: it is missing, not a plain file, too large, or open to others.
    """
    with _lines_for(path):
        # Without waiting: a pipe in the place of a file must not stop the agent.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise IdentityUnusable(f"{path}: is not a plain file")
            _check_private(path, status, FILE_MODE, owner())
            with os.fdopen(os.dup(descriptor), "rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    if len(content) > FILE_BYTES_MAX:
        raise IdentityUnusable(f"{path}: is larger than {FILE_BYTES_MAX} bytes; not a file of ours")
    if not content:
        raise IdentityUnusable(f"{path}: is empty; restore it from a copy")
    return content


def read_optional_file(path: Path, *, owner: Callable[[], int] = os.geteuid) -> bytes | None:
    """The same, or None where there is no such file (a key that was taken offline).

    Raises:
        IdentityUnusable: it is there and cannot be used.
    """
    return read_file(path, owner=owner) if os.path.lexists(path) else None


def check_folder(folder: Path, *, owner: Callable[[], int] = os.geteuid) -> None:
    """Whether a folder is there and nobody else can enter it.

    Raises:
        IdentityUnusable: not so.
    """
    with _lines_for(folder):
        status = os.stat(folder)
        if not stat.S_ISDIR(status.st_mode):
            raise IdentityUnusable(f"{folder}: is not a folder")
        _check_private(folder, status, FOLDER_MODE, owner())


def _check_private(path: Path, status: os.stat_result, wanted: int, owner: int) -> None:
    if status.st_uid not in (owner, 0):
        line = f"{path}: belongs to user {status.st_uid}, not to user {owner}; chown it"
        raise IdentityUnusable(line)
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        line = f"{path}: is open to other users (mode {mode:04o}); chmod {wanted:o} it"
        raise IdentityUnusable(line)


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        write_whole(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_new(filling: Path, folder: Path) -> None:
    try:
        filling.rename(folder)
    except (FileExistsError, NotADirectoryError):
        raise _taken(folder) from None
    except OSError:
        # A folder that is not empty is reported in different ways by different file systems.
        if folder.exists():
            raise _taken(folder) from None
        raise


def _taken(folder: Path) -> IdentityUnusable:
    return IdentityUnusable(f"{folder}: is there already; move it away first")


def _discard(folder: Path, names: Iterable[str]) -> None:
    with contextlib.suppress(OSError):
        for name in names:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Put on disk which files a folder has."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _lines_for(path: Path) -> Iterator[None]:
    """Whatever the system says about this path, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise IdentityUnusable(f"{path}: is missing") from None
    except OSError as error:
        raise IdentityUnusable(f"{path}: {error.strerror or 'cannot be used'}") from None
