"""From flags, environment and file to one `Config`, remembering where each value came from.

Flags win over the environment, that over `esnode.toml`, that over the defaults. All mistakes are
found before any is reported, each as one line that says what, where, and what would be right. The
environment and the files are arguments, so tests hand in their own.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esnode.config.keys import KEYS, TABLES, Config
from esnode.config.schema import Key, Parser
from esnode.config.values import BadValue, without_credentials

FILE_NAME = "esnode.toml"
SYSTEM_FILE = Path("/etc/esnode/esnode.toml")
CLIENT_VARIABLES = frozenset({"ESNODE_CONFIG", "ESNODE_AGENT", "ESNODE_NO_COLOR"})
"""Variables of ours that are not keys."""

_SERVICE_LINK = re.compile(
    r"ESNODE_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=.*"
    r"|PORT(_\d+_(TCP|UDP|SCTP))?=\w+://.*|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=.*)"
)
"""What Kubernetes sets in every container beside a Service called ``esnode`` or ``esnode-...``.
Source: Kubernetes documentation, "Service", environment variables (enableServiceLinks)."""


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds one line for each mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value came from."""

    source: str
    """``flag``, ``environment``, ``file`` or ``default``."""
    where: str
    """The flag, the variable, or the file's path; empty for a default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """The values, the origin of each by key name, and the file that was read."""

    config: Config
    origins: Mapping[str, Origin]
    file: Path | None

    def dormant_keys_in_use(self) -> tuple[str, ...]:
        """Keys that somebody set and that nothing reads yet."""
        return tuple(
            name
            for name, origin in self.origins.items()
            if KEYS[name].is_dormant and origin.source != "default"
        )


_DEFAULT = Origin(source="default", where="")


def find_file(flag: str | None, environment: Mapping[str, str], directory: Path) -> Path | None:
    """The file to read: `--config`, `ESNODE_CONFIG`, the working directory, then /etc.

    Raises:
        ConfigError: a file was named and is not there.
    """
    for named, how in ((flag, "--config"), (environment.get("ESNODE_CONFIG"), "ESNODE_CONFIG")):
        if named:
            path = Path(named)
            if not os.path.isfile(path):
                raise ConfigError([f"{how}: no file {path}; create it or name another"])
            return path
    for path in (directory / FILE_NAME, SYSTEM_FILE):
        if os.path.isfile(path):  # unlike Path's, this takes a locked folder for "no"
            return path
    return None


def load(
    *,
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    file: Path | None,
) -> LoadedConfig:
    """Merge the sources. `flags` maps the names that a file could use to the texts given.

    Raises:
        ConfigError: with every mistake found, in the order file, environment, flags.
    """
    parsed: dict[str, Any] = {}
    origins: dict[str, Origin] = dict.fromkeys(KEYS, _DEFAULT)
    problems: list[str] = []
    for name, parse, raw, origin, label in _candidates(flags, environment, file, problems):
        try:
            parsed[KEYS[name].attribute] = parse(raw)
        except BadValue as bad:
            problems.append(f"{label}: {_shown(KEYS[name], raw)} {bad}")
        else:
            origins[name] = origin
    problems += _hear_the_predecessor(parsed, origins)
    if problems:
        raise ConfigError(problems)
    config = Config(**parsed)
    _check_together(config)
    return LoadedConfig(config=config, origins=origins, file=file)


PREDECESSORS_MODES = (
    ("control_thermal", "orchestrator.enable_thermal_management"),
    ("control_preemption", "orchestrator.enable_flash_preemption"),
)
"""Keys of a mode, and the predecessor's: true there means enforce here."""


def _hear_the_predecessor(parsed: dict[str, Any], origins: dict[str, Origin]) -> Iterator[str]:
    """Let the predecessor's keys set the modes; those that contradict are mistakes."""
    for name, older in PREDECESSORS_MODES:
        if not parsed.get(KEYS[older].attribute):
            continue
        if parsed.get(name, "enforce") != "enforce":
            yield (
                f"{name}: is {parsed[name]}, and {older} = true means enforce; take one of them out"
            )
            continue
        parsed[name] = "enforce"
        if origins[name].source == "default":
            origins[name] = origins[older]


def _candidates(
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    file: Path | None,
    problems: list[str],
) -> Iterator[tuple[str, Parser, object, Origin, str]]:
    if file is not None:
        origin = Origin(source="file", where=str(file))
        text = _read(file)
        for written, name, parse, raw in _file_entries(text, file, problems):
            yield name, parse, raw, origin, f"{file}{_line_of(text, written)}: {written}"
    yield from _environment_entries(environment, problems)
    known = _file_names()
    for written, raw in flags.items():
        name, parse = known[written]
        flag = "--" + written.replace(".", "-").replace("_", "-")
        yield name, parse, raw, Origin(source="flag", where=flag), flag


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")  # with or without a byte order mark
    except UnicodeDecodeError:
        raise ConfigError([f"{file}: is not UTF-8 text; TOML files are"]) from None
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read: {error.strerror}"]) from None


def _file_entries(
    text: str, file: Path, problems: list[str]
) -> Iterator[tuple[str, str, Parser, object]]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Besides TOMLDecodeError: an integer of thousands of digits, brackets nested as deeply.
        raise ConfigError([f"{file}: is not valid TOML: {error}"]) from None
    flat: dict[str, object] = {}
    for name, value in document.items():
        if name not in TABLES:
            flat[name] = value
        elif isinstance(value, dict):
            flat.update({f"{name}.{inner}": inner_value for inner, inner_value in value.items()})
        else:
            line = _line_of(text, name)
            problems.append(f"{file}{line}: {name}: is not a table; write [{name}]")
    known = _file_names()
    seen: dict[str, str] = {}
    for written, value in flat.items():
        if written not in known:
            problems.append(f"{file}{_line_of(text, written)}: {unknown_key(written, known)}")
            continue
        name, parse = known[written]
        if name in seen:
            problems.append(
                f"{file}: {written} and {seen[name]} are the same setting; keep one of them"
            )
            continue
        seen[name] = written
        yield written, name, parse, value


def _file_names() -> dict[str, tuple[str, Parser]]:
    names: dict[str, tuple[str, Parser]] = {}
    for key in KEYS.values():
        names[key.name] = (key.name, key.parse)
        names.update({alias: (key.name, parse) for alias, parse in key.file_aliases})
    return names


def unknown_key(name: str, known: Collection[str]) -> str:
    """The line about a key that does not exist, with the nearest one that does."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else "`esnode config show` lists the keys"
    return f"unknown key {name!r}; {hint}"


def _environment_entries(
    environment: Mapping[str, str], problems: list[str]
) -> Iterator[tuple[str, Parser, object, Origin, str]]:
    known: dict[str, tuple[Key, Parser]] = {}
    for key in KEYS.values():
        plain_seconds = dict(key.file_aliases)
        # Aliases first: our own name wins when both are set.
        for alias in key.environment_aliases:
            file_alias = alias.removeprefix("ESNODE_").lower()
            known[alias] = (key, plain_seconds.get(file_alias, key.parse))
        known[key.environment] = (key, key.parse)
    for variable, (key, parse) in known.items():
        raw = environment.get(variable)
        if raw is not None and raw.strip():
            yield key.name, parse, raw, Origin(source="environment", where=variable), variable
    for variable in sorted(environment):
        if variable not in known and _may_mean_a_key(variable, environment[variable]):
            # Without the common beginning, which would make all of them near.
            ours = [name.removeprefix("ESNODE_") for name in known if name.startswith("ESNODE_")]
            near = difflib.get_close_matches(variable.removeprefix("ESNODE_"), ours, n=1)
            hint = f"; did you mean ESNODE_{near[0]}?" if near else ""
            problems.append(f"{variable}: no such setting{hint}")


def _may_mean_a_key(variable: str, value: str) -> bool:
    """Whether somebody may have meant to set a key by it."""
    return (
        variable.startswith("ESNODE_")
        and not variable.startswith("ESNODE_JOB_")
        and variable not in CLIENT_VARIABLES
        and not _SERVICE_LINK.fullmatch(f"{variable}={value}")
    )


def _line_of(text: str, written: str) -> str:
    """``:LINE`` of a key in the file, or nothing where it cannot be told."""
    table, _, name = written.rpartition(".")
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?([^\[\]]+)\]", line):
            section = header.group(1).strip()
        elif section == table and re.match(rf'\s*"?{re.escape(name)}"?\s*=', line):
            return f":{number}"
    return ""


def _shown(key: Key, raw: object) -> str:
    """The offending value as the operator wrote it, shortened, never a secret."""
    if key.is_secret:
        return "the value"
    text = without_credentials(repr(raw) if isinstance(raw, str) else str(raw))
    return text if len(text) <= 60 else text[:57] + "..."


def _check_together(config: Config) -> None:
    problems = []
    if (config.tls_certificate_path is None) != (config.tls_key_path is None):
        missing = "tls_key_path" if config.tls_key_path is None else "tls_certificate_path"
        problems.append(f"{missing}: is not set; HTTPS needs a certificate and its key")
    problems += _hardware_problems(config.hardware)
    if problems:
        raise ConfigError(problems)


def _hardware_problems(hardware: str) -> list[str]:
    """What is wrong with `hardware`; the catalogue of parts is loaded only when it is wanted."""
    kind, _, spec = hardware.partition(":")
    if hardware == "auto":
        return []
    if kind != "simulated":
        return [f"hardware: {hardware!r} is not auto or simulated:SPEC, e.g. simulated:h100x8"]
    from esnode.drivers.simulated.parts import UnknownSpec, parse_spec

    try:
        parse_spec(spec)
    except UnknownSpec as unknown:
        return [f"hardware: {unknown}"]
    return []


def state_directory(config: Config, environment: Mapping[str, str]) -> Path:
    """Where this agent keeps its state; the folder need not exist yet."""
    if config.state_dir is not None:
        return Path(config.state_dir)
    if os.geteuid() == 0:
        return Path("/var/lib/esnode")
    home = environment.get("HOME") or "~"
    state_home = environment.get("XDG_STATE_HOME") or f"{home}/.local/state"
    return Path(state_home).expanduser() / "esnode"


def simulated_hardware_file(config: Config, environment: Mapping[str, str]) -> Path:
    """The simulated machine's file."""
    if config.simulated_hardware_path is not None:
        return Path(config.simulated_hardware_path)
    return state_directory(config, environment) / "simulated-hardware.json"
