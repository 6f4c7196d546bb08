# SPDX-License-Identifier: Apache-2.0
"""ruedarun as people meet it: command lines, terminals, what is shown, and what is not."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from ranks import Done, environment, program

LIMIT_S = 60
SAY = "import os, sys; print(os.environ['RUEDA_RANK'], *sys.argv[1:])"


@pytest.fixture
def run(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that runs ruedarun to its end, in a folder."""
    ruedarun = need_tool("ruedarun")

    def call(*words: str, folder: Path | None = None, **more: str) -> Done:
        return subprocess.run(
            [ruedarun, *words], capture_output=True, text=True, timeout=LIMIT_S, cwd=folder,
            env=environment(**more), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, folder: Path, ruedarun: str) -> None:
        self.shown = b""
        self._process, self._keys = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            path = f"{Path(ruedarun).parent}:{os.environ['PATH']}"
            os.execvpe(
                "bash", ["bash", "--norc", "--noprofile", "-i"],
                environment(PATH=path, TERM="xterm", PS1="ready$ ", HISTFILE="", NO_COLOR="1"),
            )  # fmt: skip
        size = struct.pack("HHHH", 40, 100, 0, 0)
        fcntl.ioctl(self._keys, termios.TIOCSWINSZ, size)
        self.wait_for("ready$ ")

    def press(self, keys: str) -> None:
        self.shown = b""
        os.write(self._keys, keys.encode())

    def wait_for(self, words: str, limit_s: float = LIMIT_S) -> str:
        """What was shown until then, since keys were pressed."""
        deadline = time.monotonic() + limit_s
        while words.encode() not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, f"no {words!r} in {self.shown[-2000:].decode()!r}"
            if select.select([self._keys], [], [], min(left, 1.0))[0]:
                self.shown += os.read(self._keys, 1 << 16)
        return self.shown.decode()

    def close(self) -> None:
        os.kill(self._process, signal.SIGHUP)
        os.kill(self._process, signal.SIGKILL)
        os.close(self._keys)
        os.waitpid(self._process, 0)


@pytest.fixture
def terminal(need_tool: Callable[[str], str], tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path, need_tool("ruedarun"))
    try:
        yield made
    finally:
        made.close()


# ---- The command line ------------------------------------------------------------


def test_a_script_or_a_module_needs_no_interpreter(run, tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(SAY)
    done = run("-np", "2", "say.py", "-np", "x", folder=tmp_path)
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]<stdout>:{rank} -np x" for rank in (0, 1)]
    done = run("-np", "1", "./say.py", folder=tmp_path)
    assert done.stdout == "[0]<stdout>:0\n", done.stderr
    done = run("-np", "1", "-m", "say", "--lr", "1", folder=tmp_path)
    assert done.stdout == "[0]<stdout>:0 --lr 1\n", done.stderr
    # A program runs by itself.
    (tmp_path / "own.py").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "own.py").chmod(0o755)
    assert run("-np", "1", "./own.py", folder=tmp_path).stdout == "[0]<stdout>:mine\n"


def test_ranks_may_be_counted_by_hosts(run) -> None:
    script = "echo $RUEDA_RANK/$RUEDA_SIZE $HOROVOD_HOSTNAME"
    done = run("--nproc_per_node=2", "-H", "localhost,127.0.0.1:9", "sh", "-c", script)
    assert sorted(line.partition(":")[2] for line in done.stdout.splitlines()) == [
        "0/4 localhost", "1/4 localhost", "2/4 127.0.0.1", "3/4 127.0.0.1",
    ]  # fmt: skip
    done = run("--nproc-per-node", "2", "-np", "2", "true")
    assert "exclude each other" in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("python hello.py", "ruedarun -np 2 python hello.py"),
        ("--verbose python 'my file.py'", "ruedarun -np 2 --verbose python 'my file.py'"),
        ("python hello.py -np 4 --lr 1", "ruedarun -np 4 python hello.py --lr 1"),
        ("-H a:2 hello.py --num-proc=4", "ruedarun --num-proc=4 -H a:2 hello.py"),
    ],
)
def test_a_missing_number_is_answered_with_the_line_to_type(run, words: str, line: str) -> None:
    done = run(*shlex.split(words))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f": {line}\n")


def test_mistakes_about_output_are_named(run, tmp_path: Path) -> None:
    for words, reason in (
        (["--ranks", "1-"], "--ranks takes ranks such as 0,3,8-11, not '1-'"),
        (["--debug", "2"], "--debug 2: the ranks are 0 to 1"),
        (["--debug", "1"], "the standard input is no terminal"),
        (["--prefix", "hosts"], "did you mean 'host'?"),
        (["--network-interfaces", "eth9"], "no address that others could reach at "
                                           "--network-interfaces eth9"),
        (["--tee", str(tmp_path)], "cannot open the file of --tee"),
    ):  # fmt: skip
        done = run("-np", "2", *words, "true")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert reason in done.stderr


def test_bash_completes_options_values_and_files(run, tmp_path: Path) -> None:
    (tmp_path / "complete").write_text(run("--completion", "bash").stdout)
    (tmp_path / "train.py").touch()
    ask = (
        ". ./complete; ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _ruedarun;"
        ' echo "${COMPREPLY[*]}"; }; '
        "ask ruedarun --ver; ask ruedarun -np 2 --bind ''; ask ruedarun --bind = c;"
        "ask ruedarun -np 2 python tr; ask ruedarun -np 2 --hostfile tr; ask ruedarun --ssh-port ''"
    )
    done = subprocess.run(["bash", "--norc", "-c", ask], capture_output=True, text=True,
                          cwd=tmp_path, timeout=LIMIT_S)  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "--verbose --version", "auto none core", "core", "train.py", "train.py", "",
    ]  # fmt: skip


def test_fish_completes_options_values_and_files(run, need_tool, tmp_path: Path) -> None:
    fish = need_tool("fish")
    (tmp_path / "complete").write_text(run("--completion", "fish").stdout)
    (tmp_path / "train.py").touch()
    subprocess.run([fish, "-n", "complete"], cwd=tmp_path, check=True, timeout=LIMIT_S)
    ask = (
        "source complete; for line in '--verbos' '-np 2 --bind ' '-np 2 --hostfile tr';"
        ' complete -C "ruedarun $line" | string replace -r "\\t.*" ""; echo .; end'
    )
    done = subprocess.run([fish, "-c", ask], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "HOME": str(tmp_path)}, timeout=LIMIT_S)  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.split(".\n") == ["--verbose\n", "auto\ncore\nnone\n", "train.py\n", ""]


def test_zsh_completes_options_values_and_files(run, need_tool, tmp_path: Path) -> None:
    """At its own line editor, by the tabulator."""
    zsh = need_tool("zsh")
    (tmp_path / "complete").write_text(run("--completion", "zsh").stdout)
    (tmp_path / "train.py").touch()
    subprocess.run([zsh, "-n", "complete"], cwd=tmp_path, check=True, timeout=LIMIT_S)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execve(zsh, [zsh, "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "$ "})
    try:
        os.write(terminal, b"autoload -Uz compinit; compinit -u -d dump; . ./complete; echo up$?\n")
        read_until(terminal, "up0")
        for begun, whole in (
            ("ruedarun --verbos", "ruedarun --verbose"),
            ("ruedarun -np 2 --bind=co", "ruedarun -np 2 --bind=core"),
            ("ruedarun -np 2 --hostfile=tr", "ruedarun -np 2 --hostfile=train.py"),
            ("ruedarun -np 2 python tr", "ruedarun -np 2 python train.py"),
        ):
            os.write(terminal, begun.encode() + b"\t")
            read_until(terminal, whole)
            os.write(terminal, b"\x15")  # away with the line
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def read_until(terminal: int, wanted: str) -> None:
    """Read what appears on the terminal until this does."""
    shown, deadline = "", time.monotonic() + LIMIT_S
    while wanted not in shown:
        left = deadline - time.monotonic()
        assert left > 0 and select.select([terminal], [], [], left)[0], (wanted, shown)
        shown += os.read(terminal, 4096).decode(errors="replace")


def test_every_shell_is_told_every_option(run) -> None:
    shown = run("--help", "all").stdout
    options = re.findall(r"^  (?:-\w+, )*(--[\w-]+)", shown, re.M)
    assert len(options) > 50
    for shell in ("bash", "zsh", "fish"):
        script = run("--completion", shell).stdout
        written = "-l {}" if shell == "fish" else "--{}"
        missing = [name for name in options if written.format(name[2:]) not in script]
        assert missing == []


# ---- What is shown ---------------------------------------------------------------


def test_prefixes_and_ranks_may_be_chosen(run, tmp_path: Path) -> None:
    say = ["sh", "-c", "echo $RUEDA_RANK"]
    done = run("-np", "3", "--prefix", "none", "--ranks", "0,2", *say)
    assert sorted(done.stdout.splitlines()) == ["0", "2"]
    done = run("-np", "2", "--prefix", "host", "-H", "localhost:1,127.0.0.1:1", *say)
    lines = ["[0@localhost]<stdout>:0", "[1@127.0.0.1]<stdout>:1"]
    assert sorted(done.stdout.splitlines()) == lines
    # Files get all ranks.
    files = ["--output-filename", str(tmp_path / "out"), "--tee", str(tmp_path / "tee")]
    done = run("-np", "3", "--ranks", "1-1", *files, *say)
    assert done.stdout == "[1]<stdout>:1\n"
    assert (tmp_path / "out" / "rank.2" / "stdout").read_text() == "[2]<stdout>:2\n"
    tee = (tmp_path / "tee").read_text().splitlines()
    assert sorted(tee) == [f"[{rank}]<stdout>:{rank}" for rank in range(3)]
    # Older output is not overwritten without a word.
    assert "has the output of an older job" not in done.stderr
    done = run("-np", "3", *files, *say)
    assert f"{tmp_path / 'out'} has the output of an older job, which is overwritten" in done.stderr


def test_what_is_no_file_is_not_waited_for(run, tmp_path: Path) -> None:
    folder = tmp_path / "rank.0"
    folder.mkdir()
    os.mkfifo(folder / "stdout")
    done = run("-np", "1", "--output-filename", str(tmp_path), "true")
    assert done.returncode == 2
    assert "cannot make the files of --output-filename" in done.stderr


def test_a_file_that_hangs_holds_up_no_signal(need_tool, tmp_path: Path) -> None:
    """A pipe that is full stands for a network file system that hangs."""
    os.mkfifo(tmp_path / "tee")
    reader = os.open(tmp_path / "tee", os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "2", "--tee", str(tmp_path / "tee"), "yes"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=environment(),
    )  # fmt: skip
    try:
        time.sleep(1)  # the pipe and the queue are full
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 128 + signal.SIGINT
        assert "SIGINT: the job is ended" in err
        assert "bytes of the ranks' output are not in the files" in err
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def test_the_users_frame_and_the_ranks_of_an_exception_are_shown(run, tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    # The last frames are those of json. Only ranks that have joined are given time to end.
    script.write_text(
        "import json\nfrom rueda.common import life\n\ndef read():\n    return json.loads('{')\n\n"
        "life.init()\nread()\n"
    )
    done = run("-np", "4", "--linger", "20", sys.executable, str(script))
    assert done.returncode == 1
    heads = [line for line in done.stderr.splitlines() if line.endswith("most recent call last):")]
    assert len(heads) == 1, done.stderr
    verdict = done.stderr[done.stderr.index("the last lines of rank") :].splitlines()
    assert verdict[1] == f'      File "{script}", line 5, in read'
    assert verdict[2] == "        return json.loads('{')"
    assert verdict[3].startswith("    json.decoder.JSONDecodeError: Expecting property name")
    told = re.search(r"ranks? ([\d, -]+) raised the same as rank \d: json", done.stderr)
    assert told is not None, done.stderr


def test_survivors_tell_their_story_and_little_more(run, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(Path(program("survive.py")).read_text())
    began = time.monotonic()
    done = run("-np", "3", "--linger", "50", "train.py", "kill", folder=tmp_path)
    assert done.returncode == 128 + signal.SIGKILL
    # As soon as both have said it.
    assert time.monotonic() - began < 45
    assert "HorovodInternalError: rank 1" in done.stderr
    told = done.stderr.count("HorovodInternalError: rank 1")
    assert told == 2 or "raised the same as rank" in done.stderr, done.stderr
    done = run("-np", "3", "--linger", "50", "train.py", "save", folder=tmp_path)
    assert sorted(re.findall(r"saved (\d)", done.stdout)) == ["0", "2"]
    assert done.stderr.count("raise ValueError") <= 2 + 1  # its own, and the verdict
    # Frames of this package say nothing to the user.
    assert "rueda/torch/mpi_ops.py" not in done.stderr
    assert 'line 15, in <module>' in done.stderr


# ---- Terminals -------------------------------------------------------------------


BREAK = """
import os
x = 40 + int(os.environ["RUEDA_RANK"])
if os.environ["RUEDA_RANK"] == os.environ["STOP_AT"]:
    breakpoint()
print("end", x)
"""


def test_a_debugger_works_with_one_rank_and_with_a_chosen_one(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "stop.py").write_text(BREAK)
    terminal.press("STOP_AT=0 ruedarun -np 1 stop.py\n")
    terminal.wait_for("(Pdb) ")
    terminal.press("p x * 1000\n")
    terminal.wait_for("40000")
    terminal.wait_for("(Pdb) ")
    terminal.press("\x03")  # is the debugger's
    terminal.wait_for("(Pdb) ")
    terminal.press("c\n")
    assert "[0]<stdout>" not in terminal.wait_for("ready$ ")
    terminal.press("STOP_AT=1 ruedarun -np 2 --debug 1 stop.py; stty -a\n")
    terminal.wait_for("(Pdb) ")
    terminal.press("p x * 1000\n")
    terminal.wait_for("41000")
    terminal.press("c\n")
    terminal.wait_for("end 41")
    assert " icanon" in terminal.wait_for(" icanon")  # the terminal is as it was


def test_three_interrupts_end_a_rank_that_has_the_terminal(terminal: Terminal, tmp_path) -> None:
    (tmp_path / "deaf.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('up', flush=True)\ntime.sleep(600)\n"
    )
    terminal.press("ruedarun -np 1 --grace 0.5 deaf.py; echo code $?\n")
    terminal.wait_for("up\r\n")
    for _ in range(3):
        terminal.press("\x03")
        time.sleep(0.1)
    terminal.wait_for("code 130")


@pytest.mark.parametrize("ranks", [1, 2])
def test_ctrl_z_stops_the_ranks_and_fg_continues_them(
    terminal: Terminal, tmp_path: Path, ranks: int
) -> None:
    (tmp_path / "tick.py").write_text(
        "import os, time\n"
        "for tick in range(10**6):\n"
        "    open('ticks' + os.environ['RUEDA_RANK'], 'w').write(str(tick))\n"
        "    print('tick', flush=True)\n"
        "    time.sleep(0.02)\n"
    )
    files = [tmp_path / f"ticks{rank}" for rank in range(ranks)]
    terminal.press(f"ruedarun -np {ranks} tick.py\n")
    terminal.wait_for("tick\r\n")
    deadline = time.monotonic() + LIMIT_S
    while not all(file.exists() for file in files) and time.monotonic() < deadline:
        time.sleep(0.05)
    terminal.press("\x1a")
    terminal.wait_for("Stopped")
    terminal.wait_for("ready$ ")
    time.sleep(0.3)
    before = [file.read_text() for file in files]
    time.sleep(1)
    assert [file.read_text() for file in files] == before
    terminal.press("fg\n")
    deadline = time.monotonic() + LIMIT_S
    while any(file.read_text() in ("", old) for file, old in zip(files, before)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    terminal.press("\x03")
    terminal.wait_for("ready$ ")


def test_bars_have_room_and_leave_no_ends_behind(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "bar.py").write_text(
        "import os, shutil, sys, time\n"
        "columns = shutil.get_terminal_size().columns\n"
        "if os.environ['RUEDA_RANK'] == '0':\n"
        "    sys.stderr.write('#' * 60 + '\\r')\n"
        "    open('there', 'w')\n"
        "else:\n"
        "    while not os.path.exists('there'): time.sleep(0.01)\n"
        "    time.sleep(0.3)\n"
        "    print('columns', columns, flush=True)\n"
    )
    terminal.press("ruedarun -np 2 bar.py\n")
    shown = terminal.wait_for("columns 88")  # 100 less "[1]<stdout>:"
    bar = shown.index("#" * 60 + "\r")
    assert shown[bar + 61 :].startswith("\033[K[1]<stdout>:columns 88"), shown
