# SPDX-License-Identifier: Apache-2.0
"""The driver's side of :func:`rueda.run`: ruedarun, and a port for its ranks.

``ruedarun`` starts the ranks and ends them. They come to a port of this process
for the function, prove the key of the run, and bring back how their call ended.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import IO, Any, NamedTuple

from . import carry
from .channel import KEY_BYTES, Channel, welcome

_PROVE_S = 10.0
# Connections beyond the number of ranks that have not proved anything yet. One
# more takes the place of the oldest.
_STRANGERS = 32
# Between two attempts to accept while the system has no descriptor or thread.
_REST_S = 0.1
# After a signal, beyond the grace that ruedarun gives to its ranks.
_END_S = 30.0
_KEPT_LINES = 30

_PLACE = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
_STALE = {f"{prefix}_{name}" for prefix in ("RUEDA", "HOROVOD") for name in _PLACE}


def find_program(name: str) -> str:
    """The path of a program that was installed together with this package."""
    places = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    try:
        for file in metadata.files("rueda") or ():
            if file.name == name and file.parent.name in ("bin", "scripts"):
                places.insert(0, os.path.dirname(os.path.abspath(str(file.locate()))))
    except metadata.PackageNotFoundError:
        pass
    found = shutil.which(name, path=os.pathsep.join(places)) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            f"{name} is neither in {places[0]} nor on the PATH; install the wheel, which carries it"
        )
    return found


# ---- The port ---------------------------------------------------------------


def _is_this_host(name: str) -> bool:
    return name in ("localhost", "127.0.0.1", "::1", socket.gethostname())


def is_local(words: Sequence[str]) -> bool:
    """Do these options of ruedarun keep all ranks on this host?"""
    elsewhere = ("--hostfile", "--host-discovery-script", "--listen")
    if "LSB_JOBID" in os.environ or any(word.startswith(elsewhere) for word in words):
        return False
    lists = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("--hosts", "-H")]
    names = [item.rpartition(":")[0] or item for one in lists for item in one.split(",")]
    return all(_is_this_host(name.strip("[]")) for name in names)


def is_taken_over(words: Sequence[str]) -> bool:
    """May mpirun or jsrun start the ranks? They send the environment in the clear."""
    mine = words[: words.index("--")] if "--" in words else words
    return "LSB_JOBID" in os.environ or any(
        word.startswith(("--mpi", "--use-mpi", "--jsrun", "--use-jsrun", "--config-file"))
        for word in mine
    )


@contextmanager
def offer_in_file(text: str, is_one_host: bool) -> Iterator[str]:
    """Keep the offer in a file that this user alone may read; yields what names it.

    Ranks of other hosts have to find it too, so then it is in the home folder.
    """
    parent = None
    if not is_one_host:
        parent = os.path.join(os.path.expanduser("~"), ".rueda")
        os.makedirs(parent, mode=0o700, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="rueda-run-", dir=parent)  # only I can open it
    path = os.path.join(folder, "offer")
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "w", encoding="ascii") as out:
            out.write(text)
        yield carry.IN_FILE + path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _listen(is_one_host: bool) -> tuple[socket.socket, tuple[str, ...]]:
    """A port, and addresses under which ranks may find it."""
    if is_one_host:
        return socket.create_server(("127.0.0.1", 0), backlog=1024), ("127.0.0.1",)
    if socket.has_dualstack_ipv6():
        server = socket.create_server(
            ("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024
        )
    else:
        server = socket.create_server(("", 0), backlog=1024)
    # The address of the launcher's store comes first, task.py adds it.
    return server, (socket.gethostname(), socket.getfqdn(), "127.0.0.1")


def _hang_up(sock: socket.socket) -> None:
    """Also wakes up the thread that waits for it, which closing alone does not."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Counter:
    """Hands out the function, and takes in what became of it.

    In an elastic job ``size`` is how many processes there are at a time, and each of them has
    a number of its own in place of a rank.
    """

    def __init__(
        self, task: bytes, size: int, is_one_host: bool, is_elastic: bool = False
    ) -> None:
        self.outcomes: dict[int, carry.Outcome] = {}  # by rank or number, as they came
        self.first_failed: int | None = None
        self._task, self._size = task, size
        self._numbers = 1 << 31 if is_elastic else size
        self._key = secrets.token_bytes(KEY_BYTES)
        self._lock = threading.Lock()
        self._served: set[int] = set()
        self._unproven: dict[socket.socket, None] = {}  # the oldest first
        self._proven: set[socket.socket] = set()
        self._is_closed = threading.Event()
        self._server, self._addresses = _listen(is_one_host)
        threading.Thread(target=self._accept, name="rueda-run", daemon=True).start()

    def offer(self) -> str:
        port = self._server.getsockname()[1]
        return carry.Offer(self._key, port, self._addresses).text()

    def has_served(self) -> bool:
        """Has any rank come?"""
        with self._lock:
            return bool(self._served)

    def close(self) -> None:
        """Ranks that are still there take this for the end."""
        self._is_closed.set()
        with self._lock:
            sockets = [self._server, *self._unproven, *self._proven]
        for sock in sockets:
            _hang_up(sock)
        self._server.close()

    def _accept(self) -> None:
        """Take connections until the port is closed, whatever fails meanwhile."""
        is_warned = False
        while not self._is_closed.is_set():
            sock = None
            try:
                sock, _ = self._server.accept()
                self._admit(sock)
            except ConnectionAbortedError:
                continue  # the peer hung up before we accepted it
            except (OSError, RuntimeError) as error:
                # No descriptor, no memory or no thread. Those may come back.
                if sock is not None:
                    self._forget(sock)
                if not is_warned and not self._is_closed.is_set():
                    is_warned = True
                    print(
                        f"rueda.run: cannot take the connection of a rank: {error};"
                        " raise `ulimit -n` and `ulimit -u`; trying again",
                        file=sys.stderr,
                    )
                self._is_closed.wait(_REST_S)

    def _admit(self, sock: socket.socket) -> None:
        with self._lock:
            self._unproven[sock] = None
            is_full = len(self._unproven) > self._size + _STRANGERS
            oldest = next(iter(self._unproven))
        if is_full:
            _hang_up(oldest)
        threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._unproven.pop(sock, None)
            self._proven.discard(sock)
        sock.close()

    def _serve(self, sock: socket.socket) -> None:
        try:
            channel = self._prove(sock)
            if channel is not None:
                channel.send(self._task)
                self._note(channel.rank, carry.Outcome.unpack(channel.receive()))
                channel.send(b"")
        except (EOFError, OSError, ValueError):
            pass  # a stranger, or a rank that has died: ruedarun says so
        finally:
            self._forget(sock)

    def _prove(self, sock: socket.socket) -> Channel | None:
        """None for a rank that is here already."""
        # All of it has to be done by then, and not each step of it.
        timer = threading.Timer(_PROVE_S, _hang_up, (sock,))
        timer.daemon = True
        timer.start()
        try:
            channel = welcome(sock, self._key, self._numbers)
        finally:
            timer.cancel()
        with self._lock:
            self._unproven.pop(sock, None)
            if channel.rank in self._served:
                return None
            self._served.add(channel.rank)
            self._proven.add(sock)
        return channel

    def _note(self, rank: int, outcome: carry.Outcome) -> None:
        with self._lock:
            self.outcomes[rank] = outcome
            if outcome.value is None and self.first_failed is None:
                self.first_failed = rank


# ---- The launcher -----------------------------------------------------------


class Ended(NamedTuple):
    """How ruedarun ended."""

    code: int
    words: str  #: what it said itself


def _own_stream(stream: Any) -> Any:
    """Where a child may write in place of this stream, or None: a notebook's.

    That of IPython's kernel has a number, too: that of the server's terminal.
    """
    if not isinstance(stream, io.TextIOWrapper):
        return None
    try:
        stream.flush()
        stream.fileno()
    except (AttributeError, OSError, ValueError, io.UnsupportedOperation):
        return None
    return stream


class _Pump(threading.Thread):
    """Passes on what a child prints, and keeps the last of what ruedarun says itself."""

    def __init__(self, source: IO[bytes], target: Any) -> None:
        super().__init__(name="rueda-run", daemon=True)
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._source, self._target = source, target
        self._is_ours = False
        self.start()

    def run(self) -> None:
        with self._source:
            self._pass_on()

    def _pass_on(self) -> None:
        rest = ""
        while True:
            piece = os.read(self._source.fileno(), 1 << 16)
            if not piece:
                return
            text = piece.decode("utf-8", "replace")
            try:
                self._target.write(text)
                self._target.flush()
            except (AttributeError, OSError, ValueError):
                pass  # it is closed; the job goes on
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self._keep(line)

    def _keep(self, line: str) -> None:
        # The lines of a rank that it quotes are indented.
        self._is_ours = line.startswith("ruedarun: ") or (self._is_ours and line[:1] == " ")
        if self._is_ours:
            self.lines.append(line)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Its exit code. An interrupt is passed on, and nothing is left behind."""
    try:
        return process.wait()
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let ruedarun end its ranks: once politely, and at once if asked again."""
    try:
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_END_S)
                return
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                continue
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def launch(words: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Run ruedarun with these words, and wait for its end."""
    out = _own_stream(sys.stdout)
    # In a session of its own: a Ctrl-C of the terminal comes to this process
    # alone, which passes it on once.
    process = subprocess.Popen(
        [find_program("ruedarun"), *words], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if out is None else out, stderr=subprocess.PIPE,
        env=dict(environment), start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    pumps = [_Pump(process.stderr, sys.stderr)]
    if process.stdout is not None:
        pumps.append(_Pump(process.stdout, sys.stdout))
    try:
        code = _wait(process)
    finally:
        for pump in pumps:
            pump.join(_END_S)
    return Ended(code, "\n".join(pumps[0].lines))


def environment_for_ranks(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, without our own place in a job if we have one."""
    mine = {name: value for name, value in os.environ.items() if name not in _STALE}
    return {**mine, **(more or {})}
