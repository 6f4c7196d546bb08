# SPDX-License-Identifier: Apache-2.0
"""Every rule of tools/check-house fires where it should, and only there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check-house"


def load_script():
    # The script has no .py in its name, so it is loaded by hand; and it must
    # leave no compiled copy beside itself.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader = SourceFileLoader("check_house", str(SCRIPT))
        module = module_from_spec(spec_from_loader("check_house", loader))
        loader.exec_module(module)
        return module
    finally:
        sys.dont_write_bytecode = before


house = load_script()


def rules(tree: Path, files: dict[str, str]) -> list[str]:
    """Write the files into the tree, and say which rules they break."""
    for name, text in files.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [finding.rule for finding in house.check_tree(tree)]


def test_a_long_file_says_what_it_is_for(tmp_path: Path) -> None:
    head, rest = "/* SPDX-License-Identifier: Apache-2.0 */\n", "int a;\n" * 150
    assert rules(tmp_path, {"src/os/a.c": head + rest}) == ["head"]
    assert rules(tmp_path, {"src/os/a.c": head + "/* Clocks. */\n" + rest}) == []
    assert rules(tmp_path, {"src/os/a.c": head + rest[:700]}) == []
    assert rules(tmp_path, {"tests/a.c": head + rest}) == []


def body(lines: int) -> str:
    return "void f(void)\n{\n" + "    g();\n" * lines + "}\n"


@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("src/os/clock.c", "base/log.h"),
        ("src/base/log.c", "base/log.h"),
        ("src/algo/ring.c", "segment/slab.h"),
        ("src/transport/shm/shm.c", "transport/transport.h"),
        ("src/op/op.c", "trace/trace.h"),
        ("src/api/init.c", "engine/engine.h"),
        ("src/tool/main.c", "api/api.h"),
        ("tests/unit/test_ring.c", "algo/ring.h"),
        ("src/algo/ring.c", "ring.h"),
    ],
)
def test_allowed_include(tmp_path: Path, file: str, header: str) -> None:
    assert rules(tmp_path, {file: f'#include "{header}"\n'}) == []


@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("src/base/log.c", "os/clock.h"),
        ("src/base/log.c", "trace/trace.h"),
        ("src/os/clock.c", "transport/transport.h"),
        ("src/op/op.c", "os/clock.h"),
        ("src/fuse/plan.c", "algo/algo.h"),
        ("src/negotiate/log.c", "algo/algo.h"),
        ("src/trace/ring.c", "engine/engine.h"),
        ("src/tool/main.c", "engine/engine.h"),
        ("src/algo/ring.c", "../base/log.h"),
        ("src/nowhere/a.c", "base/log.h"),
        ("examples/c/hello.c", "base/log.h"),
    ],
)
def test_forbidden_include(tmp_path: Path, file: str, header: str) -> None:
    assert rules(tmp_path, {file: f'#include "{header}"\n'}) == ["include"]


def test_a_device_brings_its_own_algorithms(tmp_path: Path) -> None:
    assert rules(tmp_path, {"src/device/cuda/nccl.c": '#include "algo/algo.h"\n'}) == []
    assert rules(tmp_path, {"src/device/host.c": '#include "algo/algo.h"\n'}) == ["include"]


@pytest.mark.parametrize("file", ["src/algo/ring.c", "src/fuse/pack.c", "src/engine/batch.c"])
@pytest.mark.parametrize(
    "code",
    [
        "memcpy(a, b, 1);",
        "memmove(a, b, 1);",
        "memset(a, 0, bytes);",
        "memset(a, 0, count * sizeof(float));",
        "memset(a, 1, sizeof(*a));",
        "rueda_host_move(a);",
        "rueda_cuda_open(a);",
        "b = config->cuda_ipc;",
        'a = "RUEDA_CUDA_IPC=0";',
        "b = request->device == RUEDA_DEVICE_HOST;",
        "b = choice == RUEDA_NCCL_NEVER;",
    ],
)
def test_only_devices_move_tensors(tmp_path: Path, file: str, code: str) -> None:
    source = f"void f(void)\n{{\n    {code}\n}}\n"
    assert rules(tmp_path, {file: source}) == ["device"]


@pytest.mark.parametrize(
    "code",
    [
        "memset(a, 0, sizeof(*a));",
        "memset(&self->place, 0, sizeof(self->place));",
        "/* As CUDA does with RUEDA_DEVICE_HOST: memcpy(a, b, 1) */",
        "rueda_device_copy(device, work, a, b, 1);",
    ],
)
def test_structs_are_cleared_and_devices_asked(tmp_path: Path, code: str) -> None:
    source = f"void f(void)\n{{\n    {code}\n}}\n"
    assert rules(tmp_path, {"src/algo/ring.c": source, "src/engine/batch.c": source}) == []


def test_a_file_touches_what_it_may(tmp_path: Path) -> None:
    source = "void f(void)\n{\n    memcpy(a, b, 1);\n    memset(a, 0, bytes);\n}\n"
    assert rules(tmp_path, {"src/engine/sets.c": source}) == ["device"]
    (finding,) = house.check_tree(tmp_path)
    assert (finding.line, finding.text.split()[0]) == (4, "memset()")


def test_an_include_of_a_device_is_seen(tmp_path: Path) -> None:
    text = '#include "device/cuda/cuda.h"\n'
    assert set(rules(tmp_path, {"src/engine/away.c": text})) == {"device"}


@pytest.mark.parametrize("file", ["src/algo/direct_copy.c", "src/device/host_device.c"])
def test_the_host_moves_its_own(tmp_path: Path, file: str) -> None:
    source = "void f(void)\n{\n    memcpy(a, b, 1);\n    rueda_host_move(a);\n}\n"
    assert rules(tmp_path, {file: source}) == []


@pytest.mark.parametrize(
    ("file", "header", "rule"),
    [
        ("src/base/log.c", "os/clock.h", "include"),
        ("src/base/log.c", "sys/mman.h", "system-call"),
        ("src/engine/drive.c", "unistd.h", "system-call"),
        ("src/transport/loop/loop.c", "time.h", "system-call"),
    ],
)
def test_forbidden_angle_include(tmp_path: Path, file: str, header: str, rule: str) -> None:
    assert rules(tmp_path, {file: f"#include <{header}>\n"}) == [rule]


@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("src/os/clock.c", "time.h"),
        ("src/os/clock.c", "base/log.h"),
        ("src/launch/agent.c", "sys/wait.h"),
        ("src/engine/drive.c", "pthread.h"),
        ("src/engine/drive.c", "rueda/rueda.h"),
        ("tests/unit/test_ring.c", "unistd.h"),
    ],
)
def test_allowed_angle_include(tmp_path: Path, file: str, header: str) -> None:
    assert rules(tmp_path, {file: f"#include <{header}>\n"}) == []


def test_long_file(tmp_path: Path) -> None:
    assert rules(tmp_path, {"python/a.py": "x = 1\n" * 800}) == []
    assert rules(tmp_path, {"python/a.py": "x = 1\n" * 801}) == ["file-size"]


def test_long_function(tmp_path: Path) -> None:
    assert rules(tmp_path, {"src/base/a.c": body(79)}) == []
    assert rules(tmp_path, {"src/base/a.c": body(80)}) == ["function-size"]


def test_long_line(tmp_path: Path) -> None:
    assert rules(tmp_path, {"src/base/a.c": "/*" + "x" * 76 + "*/\n"}) == []
    assert rules(tmp_path, {"src/base/a.c": "/*" + "x" * 77 + "*/\n"}) == ["columns"]


def test_environment(tmp_path: Path) -> None:
    text = 'const char *x = getenv("X");\n'
    assert rules(tmp_path, {"src/base/config.c": text}) == []
    assert rules(tmp_path, {"src/base/config_file.c": text, "tests/unit/a.c": text}) == []
    assert rules(tmp_path, {"src/os/clock.c": text}) == ["getenv"]
    assert rules(tmp_path, {"src/os/clock.c": text.replace("getenv", "secure_getenv")}) == [
        "getenv"
    ]
    assert rules(tmp_path, {"src/os/clock.c": "char *(*ask)(const char *) = getenv;\n"}) == [
        "getenv"
    ]
    assert rules(tmp_path, {"src/os/clock.c": "int x;\n"}) == []


def test_whole_environment(tmp_path: Path) -> None:
    text = "char **all = environ;\n"
    assert rules(tmp_path, {"src/launch/agent.c": text}) == []
    assert rules(tmp_path, {"src/engine/a.c": text}) == ["getenv"]


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("    s = rueda_stream_accept(listener, &fd);\n", "src/auth/admission.c"),
        (
            "    rueda_handshake_init(&shake, RUEDA_ACCEPTOR,\n    key, NULL, 0);\n",
            "src/auth/admission.c",
        ),
        ("    s = rueda_socket_connect(&to, &fd);\n", "src/os/dial.c"),
        ("    s = rueda_unix_connect(name, &fd);\n", "src/os/dial.c"),
    ],
)
def test_one_way_to_admit_and_to_dial(tmp_path: Path, text: str, home: str) -> None:
    for place in (home, "tests/unit/a.c"):
        assert rules(tmp_path, {place: text}) == []
    for place in ("src/launch/door.c", "src/transport/tcp/hub.c", "src/job/store/client.c"):
        assert rules(tmp_path, {place: text}) == ["connection"]
        (tmp_path / place).unlink()


def test_an_initiator_may_be_anywhere(tmp_path: Path) -> None:
    text = "    rueda_handshake_init(&shake, RUEDA_INITIATOR, key, NULL, 0);\n"
    assert rules(tmp_path, {"src/launch/serve.c": text}) == []


@pytest.mark.parametrize("call", ["poll(&p, 1, 0)", "sched_yield ()", "clock_gettime(0, &t)",
                                  "fread(b, 1, 1, f)", "setenv(a, b, 1)"])
def test_system_call(tmp_path: Path, call: str) -> None:
    text = f"    n = {call};\n"
    for place in ("src/os/a.c", "src/launch/a.c", "src/tool/a.c", "src/transport/tcp/a.c",
                  "tests/unit/a.c", "bench/a.c", "examples/c/a.c"):
        assert rules(tmp_path, {place: text}) == []
    for place in ("src/engine/a.c", "src/transport/a.c", "src/transport/shm/b.h"):
        assert rules(tmp_path, {place: text}) == ["system-call"]
        (tmp_path / place).unlink()


@pytest.mark.parametrize(
    "text",
    [
        "ep->ops->send(ep, buf);\n",
        "ops.close(ep);\n",
        "rueda_thread_open(x);\n",
        "/* read() would block */\n",
        "// read(2)\n",
        'log_error("open(%s)", name);\n',
        "    .send = mem_send,\n    rueda_status (*send)(struct rueda_ep *ep);\n",
        "static int bind(int x)\n{\n    return x;\n}\n\nint b = bind(1);\n",
    ],
)
def test_no_system_call(tmp_path: Path, text: str) -> None:
    assert rules(tmp_path, {"src/engine/a.c": text}) == []


def test_exported_symbols() -> None:
    good = "0000000000001140 T rueda_version\n0000000000001150 T rueda_init@@RUEDA_0\n"
    assert list(house.check_exports("x", good)) == []
    bad = list(house.check_exports("x", good + "0000000000001160 T ring_shift\n"))
    assert [finding.rule for finding in bad] == ["export"]


def test_needed_libraries() -> None:
    def needed(name: str) -> list[str]:
        line = f" 0x0000000000000001 (NEEDED)  Shared library: [{name}]\n"
        return [finding.rule for finding in house.check_needed("x", line)]

    for name in ("libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"):
        assert needed(name) == []
    assert needed("libsodium.so.23") == []
    assert needed("libmpi.so.40") == ["needed"]
    assert needed("libcudart.so.12") == ["needed"]


@pytest.mark.parametrize(
    ("file", "header", "wanted"),
    [
        ("src/negotiate/log.c", "negotiate/state.h", []),
        ("src/launch/agent.c", "launch/agent_state.h", []),
        ("src/engine/lane.c", "negotiate/state.h", ["private"]),
        ("src/tool/main.c", "launch/agent_state.h", ["private"]),
        ("src/job/job.c", "job/store/state.h", ["private"]),
        ("src/engine/lane.c", "negotiate/estate.h", []),
        ("tests/unit/negotiate/test_log.c", "negotiate/state.h", []),
    ],
)
def test_private_headers(tmp_path: Path, file: str, header: str, wanted: list[str]) -> None:
    assert rules(tmp_path, {file: f'#include "{header}"\n'}) == wanted


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("struct span {\n    int a;\n};\n", "struct span {\n    int b;\n};\n"),
        ("struct span {\n    int a;\n};\n", "enum span { A };\n"),
        ("union span {\n    int a;\n};\n", "typedef unsigned int span;\n"),
        ("struct span {\n    int a;\n};\n", "typedef void (*span)(int);\n"),
        ("struct span {\n    int a;\n};\n", "typedef int span(struct a *x, int y);\n"),
        ("struct span {\n    int a;\n};\n", "typedef int span[4];\n"),
        ("struct span {\n    int a;\n};\n", "typedef struct other {\n    int b;\n} span;\n"),
        ("enum span { A };\n", "typedef struct span span;\n"),
        ("#define RUEDA_SPAN 1\n", "#define RUEDA_SPAN(x) (x)\n"),
        ("#define RUEDA_SPAN 1\n", "#ifndef A\n#    define RUEDA_SPAN 2\n#endif\n"),
    ],
)
def test_names_defined_twice(tmp_path: Path, first: str, second: str) -> None:
    assert rules(tmp_path, {"src/algo/a.c": first, "src/algo/b.h": second}) == ["twice"]
    (tmp_path / "src/algo/b.h").unlink()
    assert rules(tmp_path, {"include/rueda/rueda.h": f'extern "C" {{\n{second}}}\n'}) == ["twice"]


@pytest.mark.parametrize(
    "text",
    [
        "struct span;\nstruct span *f(struct span *x);\nstatic struct span one = {1};\n",
        "typedef struct span span;\n",
        "/* struct span { int a; }; */\n",
        "#define SPAN 2\n#define RUEDA_LOG_TAG \"b\"\n",
    ],
)
def test_names_defined_once(tmp_path: Path, text: str) -> None:
    first = '#define RUEDA_LOG_TAG "a"\nstruct span {\n    int a;\n};\n#define SPAN 1\n'
    assert rules(tmp_path, {"src/algo/a.c": first, "src/base/b.c": text}) == []
    assert rules(tmp_path, {"tests/unit/a.c": first, "src/base/b.c": "int b;\n"}) == []


def test_a_type_with_a_typedef_is_one_name(tmp_path: Path) -> None:
    text = "typedef enum stage {\n    SEND,\n    DONE\n} stage;\n"
    assert rules(tmp_path, {"src/algo/a.c": text}) == []


def test_a_word_belongs_to_one_folder(tmp_path: Path) -> None:
    first = "rueda_status rueda_tree_init(struct rueda_tree *tree);\n"
    inline = "static inline int use(void)\n{\n    return rueda_tree_at(1);\n}\n"
    free = "#define USE(x) \\\n    rueda_tree_use(x)\nint rueda_tree(int x);\n"
    same = {"src/launch/a.h": first, "src/launch/deep/b.h": first}
    assert rules(tmp_path, {**same, "src/tool/c.h": inline, "src/tool/d.h": free}) == []
    assert rules(tmp_path, {"src/tool/c.c": first}) == []
    assert rules(tmp_path, {"src/tool/e.h": "int\nrueda_tree_below(int x);\n"}) == ["twice"]
    finding = [*house.check_tree(tmp_path)][0]
    assert str(finding) == (
        "src/tool/e.h:2: twice: word tree is defined in src/launch, src/tool"
    )


@pytest.mark.parametrize(
    "text",
    [
        "struct rueda_tree {\n    int b;\n};\n",
        "struct rueda_tree_node {\n    int b;\n};\n",
        "typedef enum rueda_tree_kind {\n    LEAF\n} rueda_tree_kind;\n",
        "typedef void rueda_tree_fn(int x);\n",
        "#define RUEDA_TREE 1\n",
        "#define RUEDA_TREE_MOST 1\n",
    ],
)
@pytest.mark.parametrize("file", ["src/tool/b.h", "src/tool/b.c"])
def test_tags_and_macros_have_words_too(tmp_path: Path, file: str, text: str) -> None:
    function = "rueda_status rueda_tree_init(struct rueda_tree *tree);\n"
    elsewhere = {"src/launch/b.h": "struct rueda_trees {\n    int b;\n};\n"}
    assert rules(tmp_path, {"src/launch/a.h": function, **elsewhere, file: text}) == ["twice"]
    (finding,) = house.check_tree(tmp_path)
    assert finding.text == "word tree is defined in src/launch, src/tool"
    # In the folder of the function, and in tests, they are free.
    rules(tmp_path, {file: "int b;\n"})
    assert rules(tmp_path, {"src/launch/deep/c.h": text, "tests/unit/d.h": text}) == []


def test_the_guard_of_a_header_is_no_word(tmp_path: Path) -> None:
    function = "rueda_status rueda_tool_init(int x);\n"
    guard = "/* Options. */\n#ifndef RUEDA_TOOL_A_H\n#define RUEDA_TOOL_A_H\n"
    macro = "#ifndef RUEDA_TOOL_MOST\n#define RUEDA_TOOL_MOST 2\n#endif\n"
    assert rules(tmp_path, {"src/launch/a.h": function, "src/tool/a.h": guard + "#endif\n"}) == []
    assert rules(tmp_path, {"src/tool/a.h": guard + macro + "#endif\n"}) == ["twice"]


def test_exceptions_only_shrink(tmp_path: Path) -> None:
    text = "struct span {\n    int a;\n};\n"

    def texts(known: dict[str, int]) -> list[str]:
        return [finding.text for finding in house.check_tree(tmp_path, known)]

    rules(tmp_path, {"src/algo/a.c": text, "src/base/b.c": text})
    assert texts({"tag span": 2}) == []
    (more,) = texts({})
    assert more == "tag span is defined in src/algo/a.c, src/base/b.c"
    (fewer,) = texts({"tag span": 3})
    assert fewer == 'KNOWN_TWICE: "tag span" has 3, and it is 2 now: make it 2'
    rules(tmp_path, {"src/base/b.c": "int b;\n"})
    (none,) = texts({"tag span": 2})
    assert none.endswith("it is 1 now: take it out")
    assert len(texts({"word span": 2})) == 1


def test_a_lock_survives_a_fork_or_says_why_it_need_not(tmp_path: Path) -> None:
    def lines(locks: dict[str, str]) -> list[int]:
        return [one.line for one in house.check_tree(tmp_path, {}, locks) if one.rule == "lock"]

    rules(tmp_path, {"src/job/a.c": "int a;\nstatic pthread_mutex_t lock;\n"})
    rules(tmp_path, {"src/job/b.h": "struct b {\n    pthread_rwlock_t lock;\n};\n"})
    rules(tmp_path, {"src/job/c.c": "static struct rueda_fork_lock lock; /* pthread_mutex_t */\n"})
    rules(tmp_path, {"tests/d.c": "static pthread_mutex_t lock;\n"})
    assert lines({}) == [2, 2]
    assert lines({"src/job/a.c": "why", "src/job/b.h": "why"}) == []
    assert lines({"src/job/a.c": "why", "src/job/b.h": "why", "src/job/c.c": "old"}) == [1]


@pytest.mark.parametrize(
    ("file", "text", "wanted"),
    [
        ("src/engine/drive.c", '#include "transport/tcp/tcp.h"\n', ["transport"]),
        ("src/engine/drive.c", '#include "transport/loop/loop.h"\n', ["transport"]),
        ("src/engine/drive.c", '#include "transport/shm/shm.h"\n', ["transport"]),
        ("src/engine/drive.c", '#include "transport/transport.h"\n', []),
        ("src/engine/track.h", "struct rueda_tcp_hub *hub;\n", ["transport"]),
        ("src/engine/track.c", "int x = rueda_shm_pair_bytes();\n", ["transport"]),
        ("src/engine/track.c", "/* as rueda_tcp_hub_tend() does */\n", []),
        ("src/engine/track.c", "struct rueda_hub *hub;\n", []),
        ("src/job/network.c", '#include "transport/tcp/tcp.h"\n', []),
        ("src/job/rollcall.c", '#include "transport/tcp/tcp.h"\n', ["transport"]),
    ],
)
def test_transports_in_engine_and_job(
    tmp_path: Path, file: str, text: str, wanted: list[str]
) -> None:
    assert rules(tmp_path, {file: text}) == wanted


def test_real_library(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("missing tool: gcc")
    source, library = tmp_path / "a.c", tmp_path / "liba.so"
    source.write_text("int rueda_good(void) { return 1; }\nint bad(void) { return 2; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    found = list(house.check_library(library))
    assert [finding.text.split()[0] for finding in found] == ["bad"]


def test_status_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules(tmp_path, {"src/base/a.c": "int a;\n"}) == []
    assert house.main(["--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""

    (tmp_path / "src/base/a.c").write_text('int a;\n#include "os/clock.h"\n')
    assert house.main(["--root", str(tmp_path)]) == 1
    assert capsys.readouterr().out == (
        'src/base/a.c:2: include: base may not include "os/clock.h"\n'
    )
