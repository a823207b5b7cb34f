"""Loading and writing configuration in tests: text in, values or lines out."""

from collections.abc import Mapping
from pathlib import Path

from esnode.config import ConfigError, LoadedConfig, load


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "esnode.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def load_all(
    folder: Path,
    *,
    file: str | bytes | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> LoadedConfig:
    path = write(folder, file) if file is not None else None
    return load(flags=flags or {}, environment=environment or {}, file=path)


def problems_of(
    folder: Path,
    *,
    file: str | bytes | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> list[str]:
    """The lines of the refusal, with the file's path shortened to its name."""
    try:
        load_all(folder, file=file, environment=environment, flags=flags)
    except ConfigError as error:
        return [problem.replace(f"{folder}/", "") for problem in error.problems]
    raise AssertionError("the configuration was accepted")
