# SPDX-License-Identifier: Apache-2.0
"""Copies of a state in a folder, of which the newest whole one can be found.

A copy is some files, the manifest last:

    000000000007-3f9a1c52.model       one object of the copy
    000000000007-3f9a1c52.manifest    names, lengths and SHA-256 of the objects, as
                                      JSON; its last line is its own SHA-256

Numbers rise. A copy without a manifest does not exist: the writer was ended before.
One whose manifest or objects are not what they were is passed over with a line, and
the next older one is taken. The folder is local, or a URL that fsspec knows.

Checksums find damage, not forgery: a user who may write into the folder decides what is
read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
from typing import Any

__all__ = ["read_newest", "write"]

_FORMAT = 1
#: Copies that stay when another one is written.
_KEPT = 2
_MANIFEST = re.compile(r"(\d{12}-[0-9a-f]{8})\.manifest")
_FILE = re.compile(r"(\d{12}-[0-9a-f]{8})\.\w+(\.new)?")


class _Local:
    """A folder of this machine."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except FileNotFoundError:
            return []

    def write(self, name: str, data: bytes) -> None:
        """All of it under this name, or nothing, also after the machine has lost power."""
        os.makedirs(self._path, exist_ok=True)
        path = os.path.join(self._path, name)
        with open(path + ".new", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, name: str) -> bytes:
        with open(os.path.join(self._path, name), "rb") as file:
            return file.read()

    def remove(self, name: str) -> None:
        try:
            os.unlink(os.path.join(self._path, name))
        except FileNotFoundError:
            pass


class _Remote:
    """A folder behind a URL; an object there is written whole or not at all, or is found out."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"for {url} install fsspec: pip install fsspec") from error
        self._files, self._root = fsspec.core.url_to_fs(url)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def names(self) -> list[str]:
        self._files.invalidate_cache()
        try:
            paths = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        return [path.rpartition("/")[2] for path in paths]

    def write(self, name: str, data: bytes) -> None:
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(self._path(name), data)

    def read(self, name: str) -> bytes:
        return self._files.cat_file(self._path(name))

    def remove(self, name: str) -> None:
        try:
            self._files.rm_file(self._path(name))
        except FileNotFoundError:
            pass


def _folder(where: str) -> _Local | _Remote:
    return _Remote(where) if "://" in where else _Local(where)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---- Writing


def write(where: str, parts: dict[str, bytes]) -> None:
    """Write a copy that is newer than all that are there; older ones go but for one."""
    folder = _folder(where)
    numbers = [int(name[:12]) for name in folder.names() if _FILE.fullmatch(name)]
    stem = f"{max(numbers, default=0) + 1:012d}-{secrets.token_hex(4)}"
    listed = {}
    for name, data in parts.items():
        folder.write(f"{stem}.{name}", data)
        listed[name] = {"bytes": len(data), "sha256": _digest(data)}
    body = json.dumps({"format": _FORMAT, "objects": listed}, indent=1, sort_keys=True).encode()
    folder.write(f"{stem}.manifest", body + b"\n" + _digest(body).encode() + b"\n")
    _clear(folder)


def _clear(folder: _Local | _Remote) -> None:
    """Remove what is older than the copies that stay, each manifest before its objects."""
    names = folder.names()
    stems = sorted(found[1] for name in names if (found := _MANIFEST.fullmatch(name)))
    if len(stems) <= _KEPT:
        return
    oldest = stems[-_KEPT][:12]
    old = [name for name in names if _FILE.fullmatch(name) and name[:12] < oldest]
    for name in sorted(old, key=lambda name: not name.endswith(".manifest")):
        folder.remove(name)


# ---- Reading


def read_newest(where: str) -> dict[str, bytes] | None:
    """The objects of the newest copy that is whole; None: there is none."""
    folder = _folder(where)
    stems = [found[1] for name in folder.names() if (found := _MANIFEST.fullmatch(name))]
    for stem in sorted(stems, reverse=True):
        try:
            return _read(folder, stem)
        except (OSError, ValueError) as error:
            print(
                f"rueda: the copy {stem} in {where} is passed over: {error}",
                file=sys.stderr,
                flush=True,
            )
    return None


def _read(folder: _Local | _Remote, stem: str) -> dict[str, bytes]:
    objects = {}
    for name, known in _objects_of(folder.read(f"{stem}.manifest")).items():
        data = folder.read(f"{stem}.{name}")
        if len(data) != known["bytes"] or _digest(data) != known["sha256"]:
            raise ValueError(f"its object {name!r} is not what was written")
        objects[name] = data
    return objects


def _objects_of(manifest: bytes) -> dict[str, Any]:
    body, _, digest = manifest.removesuffix(b"\n").rpartition(b"\n")
    if _digest(body).encode() != digest:
        raise ValueError("its manifest is not what was written")
    read = json.loads(body)
    if read.get("format") != _FORMAT:
        raise ValueError(f"its format is {read.get('format')!r}, and this release knows {_FORMAT}")
    objects = read["objects"]
    if not all(re.fullmatch(r"\w+", name) for name in objects):
        raise ValueError("its manifest names files that are not objects")
    return objects
