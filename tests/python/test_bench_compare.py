# SPDX-License-Identifier: Apache-2.0
"""bench/compare: its statistics, and its verdicts on builds that are scripts."""

from __future__ import annotations

import json
import random
import statistics
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from math import comb
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "compare"


def load_script():
    """The script has no .py in its name, and must leave no compiled copy beside itself."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader = SourceFileLoader("bench_compare", str(SCRIPT))
        module = module_from_spec(spec_from_loader("bench_compare", loader))
        sys.modules["bench_compare"] = module  # NamedTuple looks it up
        loader.exec_module(module)
        return module
    finally:
        sys.dont_write_bytecode = before


bench = load_script()

# ---- Statistics -------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "rank"),
    # From printed tables of the sign test; with up to five values there is none.
    [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10)],
)
def test_which_values_enclose_the_median(count: int, rank: int) -> None:
    assert bench.interval_rank(count) == rank


def test_the_interval_is_the_narrowest_that_is_sure_enough() -> None:
    for count in range(6, 80):
        rank = bench.interval_rank(count)
        tail = [sum(comb(count, below) for below in range(k)) / 2**count for k in range(rank + 2)]
        assert tail[rank] <= 0.025 < tail[rank + 1]


def test_a_wider_interval_is_surer() -> None:
    assert bench.interval_rank(20, 0.99) == 4
    assert bench.interval_rank(20, 0.5) == 8


def test_the_interval_is_made_of_values_in_order() -> None:
    values = [float(value) for value in range(1, 21)]
    random.Random(1).shuffle(values)
    assert bench.median_interval(values) == (10.5, 6.0, 15.0)
    assert bench.median_interval([3.0] * 6) == (3.0, 3.0, 3.0)
    with pytest.raises(ValueError, match="at least 6 values"):
        bench.median_interval([1.0] * 5)


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    source, hits = random.Random(7), 0
    for _ in range(2000):
        _, low, high = bench.median_interval([source.expovariate(1) for _ in range(20)])
        hits += low <= 0.6931 <= high
    assert 0.94 <= hits / 2000 <= 0.98  # exactly 0.9586


def test_limits_and_verdicts() -> None:
    names = ("shm/64", "tcp/134217728", "step/400x4096", "torch/many")
    assert [bench.limit_of(name) for name in names] == [1.05] * 4
    names = ("shm/8", "tcp/8", "latency/8", "step/8", "start/2", "start/64")
    assert [bench.limit_of(name) for name in names] == [1.10] * 6
    assert bench.verdict_of(0.9, 1.05, 1.05) == "ok"
    assert bench.verdict_of(1.0, 1.06, 1.05) == "unclear"
    assert bench.verdict_of(1.06, 1.07, 1.05) == "slower"


def test_a_ratio_is_of_one_pair() -> None:
    """The machine is twice as slow in the second half, for both builds."""
    old = [1.0] * 10 + [2.0] * 10
    row = bench.summary_of("shm/64", old, [1.02 * time for time in old])
    assert row["ratio"] == pytest.approx(1.02)
    assert row["high"] == pytest.approx(1.02)
    assert row["verdict"] == "ok"
    assert row["old"] == statistics.median(old)


def test_steal_is_a_share_of_all_time() -> None:
    assert bench.steal_percent([0] * 8, [10, 0, 10, 70, 0, 0, 5, 5]) == 5.0
    assert bench.steal_percent([1] * 8, [1] * 8) == 0.0
    assert len(bench.cpu_ticks()) == 8
    assert "usable cores" in bench.machine()


# ---- Builds that are scripts ------------------------------------------------

# Notes its turn; then writes rows, whose times are all the same, where --json says.
RUEDA = """#!/bin/sh
echo {name} "$@" >>{log}
[ -n "$LD_LIBRARY_PATH" ] || exit 9
kind=$2 min=8 max=8
while [ $# -gt 0 ]; do
    case $1 in --min) min=$2 ;; --max) max=$2 ;; --json) file=$2 ;; esac
    shift
done
if [ $kind = step ]; then
    echo '{{"rows": [{{"named_us": {time}}}, {{"named_us": {time}}}]}}' >$file
else
    rows='' size=$min
    while [ $size -le $max ]; do
        rows="$rows, {{\\"bytes\\": $size, \\"median_us\\": {time}}}"
        size=$((size * 8))
    done
    echo "[${{rows#, }}]" >$file
fi
{end}
"""


def make_build(folder: Path, name: str, time: float = 10, end: str = "exit 0") -> str:
    prefix = folder / name
    for part, text in [
        ("bin/rueda", RUEDA.format(name=name, log=folder / "log", time=time, end=end)),
        ("bin/ruedarun", "#!/bin/sh\nexit 0\n"),
        ("lib/librueda.so", ""),
    ]:
        file = prefix / part
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return str(prefix)


def compare(folder: Path, *words: str, time: float = 10, end: str = "exit 0") -> int:
    old, new = make_build(folder, "old"), make_build(folder, "new", time, end)
    return bench.main(["--old", old, "--new", new, "--pairs", "6", *words])


def turns(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "log").read_text().splitlines()]


def test_a_build_that_is_as_fast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(tmp_path, "--only", "shm,tcp,latency,step", "--json", str(tmp_path / "j")) == 0
    out = capsys.readouterr().out
    assert out.index("# machine ") < out.index("# steal ") < out.index("| row |")
    answer = json.loads((tmp_path / "j").read_text())
    assert answer["pairs"] == 6 and answer["steal_percent"] >= 0
    names = [row["row"] for row in answer["rows"]]
    sizes = [8, 64, 512, 4096, 32768, 262144, 2097152, 16777216, 134217728]
    assert names == [f"{way}/{size}" for way in ("shm", "tcp") for size in sizes] + [
        "latency/8", "step/400x4096", "step/8"]  # fmt: skip
    assert all(row["ratios"] == [1.0] * 6 for row in answer["rows"])
    assert all(f"| {name} | 10 | 10 | 1.000 |" in out for name in names)


def test_builds_take_turns(tmp_path: Path) -> None:
    assert compare(tmp_path, "--only", "tcp/64,step") == 0
    seen = turns(tmp_path)
    assert [words[0] for words in seen if words[2] == "step"] == ["old", "new", "new", "old"] * 3
    assert [words[0] for words in seen[:8]] == ["old", "new"] * 2 + ["new", "old"] * 2
    assert " --min 64 --max 64 --rounds 5 --transport tcp " in " ".join(seen[0])


@pytest.mark.parametrize(
    ("row", "time", "status"),
    [("shm/64", 10.4, 0), ("shm/64", 10.6, 1), ("shm/8", 10.6, 0), ("shm/8", 11.2, 1),
     ("shm/64", 5, 0)],
)  # fmt: skip
def test_a_build_that_is_slower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, time: float, status: int
) -> None:
    assert compare(tmp_path, "--only", row, time=time) == status
    assert ("| slower |" if status else "| ok |") in capsys.readouterr().out


def test_starts_are_those_of_each_build(tmp_path: Path) -> None:
    old, new = make_build(tmp_path, "old"), make_build(tmp_path, "new")
    (Path(new) / "bin/ruedarun").write_text("#!/bin/sh\n[ $2 = 2 ] && sleep 0.15\n")
    words = ["--old", old, "--new", new, "--pairs", "6", "--rounds", "1", "--only", "start/2"]
    assert bench.main([*words, "--json", str(tmp_path / "rows")]) == 1
    (row,) = json.loads((tmp_path / "rows").read_text())["rows"]
    assert row["verdict"] == "slower" and row["new"] > 150e3


def test_torch_runs_under_each_python(tmp_path: Path) -> None:
    for name, time in [("old", 8), ("new", 9)]:
        rows = json.dumps([{"model": "conv", "rueda_ms": time}])
        text = f"#!/bin/sh\nfor file; do :; done\necho '{rows}' >$file\n"
        (tmp_path / f"python-{name}").write_text(text)
        (tmp_path / f"python-{name}").chmod(0o755)
    rows = tmp_path / "rows"
    assert compare(tmp_path, "--only", "torch/conv", "--json", str(rows), "--old-python",
                   str(tmp_path / "python-old"), "--new-python", str(tmp_path / "python-new")) == 1
    assert json.loads(rows.read_text())["rows"][0]["ratio"] == 9 / 8


@pytest.mark.parametrize("end", ["exit 3", "echo '[]' >$file"])
def test_a_run_without_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    assert compare(tmp_path, "--only", "shm/64", end=end) == 2
    assert "compare: new: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--pairs", "5"], "at least 6"),
        (["--only", "udp"], "udp is no row"),
        (["--only", "shm/9"], "shm/9 is no row"),
        (["--only", "torch"], "take --old-python and --new-python"),
    ],
)
def test_what_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    with pytest.raises(SystemExit) as end:
        compare(tmp_path, *words)
    assert end.value.code == 2
    assert text in capsys.readouterr().err


def test_a_tree_that_lacks_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = make_build(tmp_path, "old")
    with pytest.raises(SystemExit):
        bench.main(["--old", old, "--new", str(tmp_path / "nowhere")])
    assert "nowhere/bin/rueda" in capsys.readouterr().err
