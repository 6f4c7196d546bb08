/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeds DIR: write the inputs that fuzzing begins with, DIR/<target>/<name>.
 * What is not text comes from the library's own encoders. The bytes at the end
 * are the choices that a target makes; the last one is the first to be made.
 */
#include <sys/stat.h>

#include "auth/handshake.h"
#include "base/bytes.h"
#include "base/config.h"
#include "fuzz/fuzz.h"
#include "job/business_card.h"
#include "job/rendezvous.h"
#include "job/rollcall.h"
#include "job/store/wire.h"
#include "job/topology.h"
#include "launch/assignment.h"
#include "negotiate/state.h"
#include "trace/timeline_wire.h"
#include "transport/tcp/about.h"
#include "transport/tcp/frame.h"

#define SEED_BYTES 4096

static const char *root;

static void save(const char *target, const char *name, const void *bytes,
                 size_t len)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, target);
    (void)mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/%s/%s", root, target, name);
    file = fopen(path, "we");
    must(file != NULL);
    must(fwrite(bytes, 1, len, file) == len);
    must(fclose(file) == 0);
}

/* ---- Text --------------------------------------------------------------- */

#define DIGITS "00112233445566778899aabbccddeeff"
/* Of X25519, in hexadecimal: a public key as good as any (RFC 7748). */
#define BASE_POINT                                                             \
    "0900000000000000000000000000000000000000000000000000000000000000"

#define TEXT(target, name, text)                                               \
    {                                                                          \
        target, name, text, sizeof(text) - 1                                   \
    }

/* What a rank has that is frozen. */
#define STANDING "\5\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"

static const struct {
    const char *target;
    const char *name;
    const char *text;
    size_t len;
} texts[] = {
    TEXT("key_file", "key", DIGITS DIGITS "\n\0"),
    TEXT("key_file", "capitals", "ABCDEF" DIGITS DIGITS "\1"),
    TEXT("key_file", "open", DIGITS DIGITS "\n\2"),
    TEXT("hostlist", "one", "login\0\x40"),
    TEXT("hostlist", "range", "node[01-03,7]-ib,login\0\x40"),
    TEXT("hostlist", "tasks", "4(x2),3\3\x40"),
    TEXT("seat", "rueda",
         "RUEDA_RANK=1\nRUEDA_SIZE=4\nRUEDA_LOCAL_RANK=1\n"
         "RUEDA_LOCAL_SIZE=2\nRUEDA_STORE=10.0.0.1:4000\nRUEDA_JOB=j"),
    TEXT("seat", "options", "rank=1\nsize=2\nlocal_size=2\nexchange=1\njob=a"),
    TEXT("seat", "horovod",
         "HOROVOD_RANK=1\nHOROVOD_SIZE=4\nHOROVOD_LOCAL_SIZE=4\n"
         "HOROVOD_GLOO_RENDEZVOUS_ADDR=h"),
    TEXT("seat", "torchrun",
         "RANK=2\nWORLD_SIZE=5\nLOCAL_WORLD_SIZE=5\nMASTER_ADDR=h\n"
         "MASTER_PORT=1\nTORCHELASTIC_RUN_ID=x"),
    TEXT("seat", "openmpi",
         "OMPI_COMM_WORLD_RANK=3\nOMPI_COMM_WORLD_SIZE=6\n"
         "OMPI_COMM_WORLD_LOCAL_RANK=3\nPMIX_NAMESPACE=n\nPMIX_RANK=3"),
    TEXT("seat", "hydra",
         "PMI_RANK=4\nPMI_SIZE=7\nPMI_FD=6\nMPI_LOCALRANKID=0\n"
         "MPI_LOCALNRANKS=7"),
    TEXT("seat", "slurm",
         "SLURM_STEP_ID=2\nSLURM_JOB_ID=77\nSLURM_PROCID=5\nSLURM_NTASKS=8\n"
         "SLURM_LOCALID=1\nSLURM_NODEID=1\nSLURM_STEP_NUM_NODES=3\n"
         "SLURM_STEP_TASKS_PER_NODE=4(x1),2(x2)\nSLURM_STEP_NODELIST=n[1-3]"),
    TEXT("select", "sizes", "allreduce:0-4k:tree;allreduce:4k-inf@2-8:ring"),
    TEXT("select", "end", "allreduce:18446744073709551615-inf:ring"),
    TEXT("select", "kinds",
         " broadcast:tree ; alltoall:@3:pairwise;;allgather:1m-2g:ring;"
         "barrier:dissemination"),
    TEXT("launch_hosts", "list", "node-1:4,10.0.0.2:1,[fd00::1]:2\0"),
    TEXT("launch_hosts", "dash", "[-A:]:9\0"),
    TEXT("launch_hosts", "file", "# mine\na slots=4\n b:2 # fast\n\1"),
    TEXT("launch_hosts", "lsf", "batch 1 node-1 42 node-2 42\2"),
    TEXT("launch_hosts", "lsf_names", "a a\nb [fd00::1]\n\3"),
    TEXT("launch_hosts", "discovery", "a:4 # new\n\n[fd00::1]:2\n\4"),
    TEXT("launch_hosts", "discovery_default", "a\n[fd00::1]\n\5"),
    TEXT("launch_config", "sections",
         "controller: gloo\nparams:\n  cycle_time_ms: 3.5\n"
         "  fusion_threshold_mb: 32\nstall_check: {enabled: no}\n"
         "logging:\n  level: info\n  with_timestamp: true\n"),
    TEXT("doctor_line", "check",
         "rueda-doctor\tcheck\tcpus\twarn\t2 of 4\tget more"),
    TEXT("doctor_line", "half",
         "[3]<stdout>:rueda-doctor\thalf\ttcp\t0\t2\t2.5e-05\t1.5e+09\t-1200"),
    TEXT("doctor_line", "net", "rueda-doctor\tnet\teth0\t10.77.0.0/24\t1500"),
    TEXT("doctor_line", "failed", "rueda-doctor\tfailed\t3\trank 2 died"),
    TEXT("address", "ipv4", "10.1.2.3:4000"),
    TEXT("address", "ipv6", "[2001:db8::1]:65535"),
    TEXT("address", "scope", "[fe80::1%1]:1"),
    TEXT("address", "mapped", "[::ffff:1.2.3.4]:80"),
    TEXT("address_list", "both", "eth0,10.1.0.0/16"),
    TEXT("address_list", "networks", "127.0.0.0/8, 2001:db8::/32 ::1/128"),
    TEXT("address_list", "wrong", "10.1.2.3/33,10.1.0.0/-1,lo,/8,x/8"),
    TEXT("network", "two", "10.1.2.3:4000 [2001:db8::1]:4001"),
    TEXT("network", "ranks", "127.0.0.1:1\0\0[fe80::1%1]:3 10.0.0.1:4\0"),
    TEXT("network", "names", "localhost:1 10.1.2.3 10.1.2.3:70000 :: :1"),
    TEXT("sim_net", "flat", "hosts 8\nport latency 500ns bandwidth 20GB/s\n"),
    TEXT("sim_net", "racks",
         "# a fat tree\nhosts 16\nranks-per-host 4\nhosts-per-rack 3\n"
         "oversubscription 1.5\nuplink latency 5us bandwidth 100Gbit/s "
         "jitter 1us\nspine latency 1us # slow\n"),
    TEXT("model", "small",
         "model m\nsample image\nbatch 8\ncompute 2.5ms\nforward 0.3\n"
         "tensor fc.bias 10 0\ntensor fc.weight 10x4 40 # last\n"),
    TEXT("model", "sizes", "tensor a 3\ntensor b 64x3x7x7 118013952\n"),
    TEXT("seal", "right",
         "\0\0\7\0\0\6\0\0\5\0\0\4\0\0\3\0\0\2\0\0\1\0"
         "\0\0"),
    TEXT("seal", "flip", "\x20\1\0\1\0\0\0"),
    TEXT("seal", "again", "\0\0\1\0\0\1\0\0\0"),
    TEXT("seal", "cut", "\0\5\1\1\0\0\0"),
    TEXT("seal", "longer", "\0\2\1\0\0\0"),
    TEXT("set_text", "two", "0,2;4-7\7"),
    TEXT("ballot", "change",
         "\10\0gone/2/2"
         "\12\30frozen/2/0" STANDING "\12\30frozen/2/1" STANDING
         "\12\30frozen/2/3" STANDING "\12\30frozen/2/4" STANDING
         "\13\0offered/2/0\13\0offered/2/1\13\0offered/2/3"
         "\13\0offered/2/4\10\0gone/4/0\10\0gone/0/4"),
    TEXT("set_text", "wrong", "0-3,1;9\3"),
    TEXT("tcp_pulse", "words", "rank 3 failed: \33[1mno\n\1"),
    TEXT("tcp_pulse", "forged", "rank 3 failed: \33[1mno\n\2"),
    TEXT("object", "right", "an object\0"),
    TEXT("object", "changed", "an object\7"),
    TEXT("object", "forged", "an object that is longer\377"),
    TEXT("sealed_stream", "right", "a line, and another\0\0\0\24"),
    TEXT("sealed_stream", "flip", "a line, and another\0\7\1\24"),
    TEXT("sealed_stream", "peer", "\3\0\0\0abc\0\0\0\0\377\377\377\377x\25"),
    TEXT("rollcall", "words", "w\3three did not come\2"),
    TEXT("meet_wire", "kinds", "rrrr\0\1"),
    TEXT("meet_wire", "failure", "f\5\3\0why\x22\0"),
    TEXT("pmi_wire", "lines", "cmd=x rc=0 value=0a0b0c0d\ncmd=x rank=3\n\0"),
    TEXT("pmi_wire", "counted",
         "26    cmd=x;rc=0;value=0a0b0c0d;     6cmd=x;\1"),
    TEXT("pmi_wire", "refusal", "cmd=x rc=-1 msg=no\n\0"),
    TEXT("pmi", "pmi1_put",
         "cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\n"
         "cmd=my_kvsname kvsname=kvs_1\ncmd=put_result rc=0\n"
         "cmd=barrier_out\ncmd=finalize_ack\n\3\0"),
    TEXT("pmi", "pmi1_get",
         "cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\n"
         "cmd=my_kvsname kvsname=kvs_1\ncmd=barrier_out\n"
         "cmd=get_result rc=0 value=63617264\ncmd=finalize_ack\n\3\2"),
    TEXT("pmi", "pmi1_seal",
         "cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\n"
         "cmd=my_kvsname kvsname=kvs_1\ncmd=barrier_out\n"
         "cmd=get_result rc=0 value=" BASE_POINT "\ncmd=put_result rc=0\n"
         "cmd=get_result rc=0 value=" BASE_POINT "\ncmd=put_result rc=0\n"
         "cmd=get_result rc=0 value=" BASE_POINT "\ncmd=put_result rc=0\n"
         "cmd=put_result rc=0\ncmd=barrier_out\ncmd=finalize_ack\n\x1f\4"),
    TEXT("pmi", "pmi2_get",
         "cmd=response_to_init rc=0\n"
         "41    cmd=fullinit-response;rc=0;rank=3;size=4;"
         "38    cmd=job-getid-response;rc=0;jobid=7.1;"
         "28    cmd=kvs-fence-response;rc=0;"
         "52    cmd=kvs-get-response;rc=0;found=TRUE;value=63617264;"
         "27    cmd=finalize-response;rc=0;\3\3"),
};

/* ---- Settings ----------------------------------------------------------- */

/* The choice is the place in the table. */
static void save_setting(const char *name, const char *setting,
                         const char *value)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);
    unsigned char seed[64];
    size_t len = strlen(value);
    size_t which = 0;

    while (which < count && strcmp(table[which].name, setting) != 0)
        which++;
    must(which < count && len < sizeof(seed));
    memcpy(seed, value, len + 1);
    seed[len] = (unsigned char)which;
    save("config", name, seed, len + 1);
}

static void save_settings(void)
{
    save_setting("rank", "RUEDA_RANK", "7");
    save_setting("store", "RUEDA_STORE", "host:4000");
    save_setting("keeper", "RUEDA_STORE_KEEPER", "launcher");
    save_setting("timeout", "RUEDA_START_TIMEOUT", "1.5m");
    save_setting("log", "RUEDA_LOG_LEVEL", "debug");
    save_setting("transport", "RUEDA_TRANSPORT", "shm");
    save_setting("encrypt", "RUEDA_ENCRYPT", "always");
    save_setting("ring", "RUEDA_RING_BYTES", "2M");
    save_setting("spin", "RUEDA_SPIN_US", "250");
}

/* ---- Handshakes --------------------------------------------------------- */

/* What a peer sends to the end that fuzz_handshake.c plays. It is the second to
 * draw a nonce, as it is here. */
static void save_handshake(const char *name, unsigned choice)
{
    struct rueda_key key = {.bytes = {1, 2, 3}, .present = (choice & 2) != 0};
    const bool is_acceptor = choice & 1;
    unsigned char seed[RUEDA_HANDSHAKE_BYTES + 2];
    struct rueda_handshake ends[2]; /* the target's and the peer's */
    size_t len = 0;

    fuzz_random_restart();
    rueda_handshake_init(&ends[0],
                         is_acceptor ? RUEDA_ACCEPTOR : RUEDA_INITIATOR,
                         RUEDA_FOR_STORE, &key, "rank 0", 6);
    rueda_handshake_init(&ends[1],
                         is_acceptor ? RUEDA_INITIATOR : RUEDA_ACCEPTOR,
                         RUEDA_FOR_STORE, &key, "rank 1", 6);
    for (int turn = 0; turn < 4; turn++) {
        const int from = turn % 2;
        const void *bytes;
        size_t count = rueda_handshake_output(&ends[from], &bytes);
        size_t used;

        if (from == 1) {
            memcpy(seed + len, bytes, count);
            len += count;
        }
        must(rueda_handshake_input(&ends[1 - from], bytes, count, &used) >= 0);
        rueda_handshake_sent(&ends[from], count);
    }
    must(len == RUEDA_HANDSHAKE_BYTES);
    seed[len++] = 0xff; /* all in one piece */
    seed[len++] = (unsigned char)choice;
    save("handshake", name, seed, len);
}

static void save_handshakes(void)
{
    save_handshake("initiator", 0);
    save_handshake("acceptor", 1);
    save_handshake("initiator_key", 2);
    save_handshake("acceptor_key", 3);
    save("handshake_flip", "none", "\xff\xff\xff\xff\xff\xff\xff\xff\1", 9);
    save("handshake_flip", "pieces", "\1\2\3\4\5\6\7\10\0", 9);
    save("handshake_flip", "hello", "\1\24\1\xff\xff\xff\xff\xff\xff\xff\xff\1",
         12);
    save("handshake_flip", "proof",
         "\1\x80\1\xff\xff\xff\xff\xff\xff\xff\xff\1", 12);
}

/* ---- The store ---------------------------------------------------------- */

#define NAME  .key = "name", .key_bytes = 4
#define VALUE .value = "a value", .value_bytes = 7

static const struct rueda_store_request requests[] = {
    {.kind = RUEDA_STORE_ATTACH,
     .number = 1,
     .key = "0123456789abcdef",
     .key_bytes = RUEDA_STORE_SESSION_BYTES},
    {.kind = RUEDA_STORE_GET, .number = 2, NAME},
    {.kind = RUEDA_STORE_WAIT, .number = 3, NAME, .revision = 1, .time_ms = 9},
    {.kind = RUEDA_STORE_SET, .number = 4, NAME, VALUE, .id = 77},
    {.kind = RUEDA_STORE_ADD, .number = 5, NAME, .count = INT64_MIN},
    {.kind = RUEDA_STORE_WATCH, .number = 6},
    {.kind = RUEDA_STORE_WILL, .number = 7, NAME, VALUE, .time_ms = 100},
    {.kind = RUEDA_STORE_BYE, .number = UINT64_MAX},
};

static const struct rueda_store_reply replies[] = {
    {.kind = RUEDA_STORE_ATTACH, .number = 1, .revision = 5, .count = 1},
    {.kind = RUEDA_STORE_GET, .number = 2, .revision = 3, VALUE},
    {.kind = RUEDA_STORE_WAIT, .number = 3, .status = RUEDA_ERR_TIMEOUT},
    {.kind = RUEDA_STORE_EVENT_SET, .number = 8, .revision = 2, NAME, VALUE},
    {.kind = RUEDA_STORE_EVENT_DELETE, .number = 8, .revision = 3, NAME},
};

/* Steps of fuzz_store.c: what and where, kind, key, value, number, revision,
 * id, time. */
static const unsigned char steps[][8] = {
    {0x02, RUEDA_STORE_ATTACH, 0},
    {0x12, RUEDA_STORE_ATTACH, 1},
    {0x02, RUEDA_STORE_WATCH, 6},
    {0x12, RUEDA_STORE_WAIT, 0, 0, 0, 0, 0, 4},
    {0x02, RUEDA_STORE_LEASE_OPEN, 6, 0, 0, 0, 0, 3},
    {0x02, RUEDA_STORE_SET, 0, 1, 0, 0, 1},
    {0x12, RUEDA_STORE_ADD, 1},
    {0x12, RUEDA_STORE_CAS, 3, 2},
    {0x12, RUEDA_STORE_GET, 3},
    {0x12, RUEDA_STORE_DELETE, 3},
    {0x12, RUEDA_STORE_WAIT, 5, 0, 0, 0, 0, 2},
    {0x00, 0, 0, 0, 0, 0, 0, 4},
    {0x12, RUEDA_STORE_WILL, 4, 0xf1, 0, 0, 0, 2},
    {0x11},
    {0x00, 0, 0, 0, 0, 0, 0, 2},
    {0x22, RUEDA_STORE_ATTACH, 1},
    {0x22, RUEDA_STORE_ADD, 1, 0, 0x85},
    {0x32, RUEDA_STORE_ATTACH, 0},
    {0x32, RUEDA_STORE_UNWATCH, 6, 0, 0, 0, 3},
    {0x32, RUEDA_STORE_LEASE_RENEW, 6, 0, 0, 0, 1},
    {0x32, RUEDA_STORE_LEASE_CLOSE, 6, 0, 0, 0, 1},
    {0x32, RUEDA_STORE_BYE, 6},
};

static size_t add(unsigned char *seed, size_t len, const void *bytes,
                  size_t count)
{
    must(len + count <= SEED_BYTES);
    if (count > 0)
        memcpy(seed + len, bytes, count);
    return len + count;
}

/* More of everything than one session may have. */
static void save_limits(void)
{
    unsigned char seed[SEED_BYTES];
    size_t len = add(seed, 0, steps[0], sizeof(steps[0]));

    for (int i = 0; i <= RUEDA_STORE_MOST_WAITS; i++)
        len = add(seed, len, "\2\4\5\0\0\0\0\4", 8);
    for (int i = 0; i <= RUEDA_STORE_MOST_WATCHES; i++)
        len = add(seed, len, "\2\11\0\0\0\0\0\0", 8);
    for (int i = 0; i <= RUEDA_STORE_MOST_LEASES; i++)
        len = add(seed, len, "\2\13\6\0\0\0\0\4", 8);
    save("store", "limits", seed, len);
}

static void save_frames(void)
{
    unsigned char seed[SEED_BYTES];
    size_t len = 0;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        len += rueda_store_request_encode(&requests[i], seed + len);
        len = add(seed, len, requests[i].value, requests[i].value_bytes);
    }
    save("store_wire", "requests", seed, len);
    len = 0;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        len += rueda_store_reply_encode(&replies[i], seed + len);
        len = add(seed, len, replies[i].value, replies[i].value_bytes);
    }
    save("store_wire", "replies", seed, len);
    save("store", "all_kinds", steps, sizeof(steps));
    save("store", "sessions", steps, 4 * sizeof(steps[0]));
}

/* ---- Streams between ranks ---------------------------------------------- */

static const struct rueda_tcp_frame tcp_frames[] = {
    {.kind = RUEDA_TCP_PIECE,
     .bytes = (uint32_t)RUEDA_TCP_PIECE_BYTES,
     .tag = {1, 2, 3},
     .number = 7,
     .first = 7,
     .total = RUEDA_TCP_PIECE_BYTES + 5},
    {.kind = RUEDA_TCP_PIECE,
     .bytes = 5,
     .tag = {1, 2, 3},
     .number = 8,
     .first = 7,
     .offset = RUEDA_TCP_PIECE_BYTES,
     .total = RUEDA_TCP_PIECE_BYTES + 5},
    {.kind = RUEDA_TCP_PIECE, .tag = {1, 0, 4}, .number = 9, .first = 9},
    {.kind = RUEDA_TCP_GRANT, .first = 7},
    {.kind = RUEDA_TCP_CREDIT, .total = 1 << 20},
};

/* Steps of fuzz_tcp_ep.c: what and where, kind, tag, first, number, place,
 * length, extra bytes. */
static const unsigned char endpoint_steps[][8] = {
    {0, 0, 0, 0, 0, 0, 4},    {2, 0, 0, 0, 0, 0, 4}, {6, 0, 0, 0, 0, 1, 4},
    {2, 0, 1, 0, 0, 0, 2},    {0, 0, 1, 0, 0, 0, 2}, {1, 0, 2, 0, 0, 0, 5},
    {6, 1, 0, 0, 0, 0, 0},    {2, 2, 0, 0, 0, 0, 9}, {0, 0, 3, 0, 0, 0, 1},
    {2, 0, 3, 0, 0, 0, 2},    {6, 0, 0, 0, 1, 0, 2}, {2, 0, 0, 0, 254, 0, 3},
    {2, 0, 0, 0, 0, 0, 1, 9},
};

/* Steps of fuzz_tcp_pair.c: what and which way, tag or fault, how many. */
static const unsigned char pair_steps[][3] = {
    {0x00}, {0x11},       {6, 0, 5}, {0x10, 1}, {1, 1},
    {5},    {0x03, 1, 9}, {0, 2},    {0x11, 2}, {5}};

static void save_streams(void)
{
    static const struct rueda_tcp_about abouts[2] = {
        {3, 4, 7, RUEDA_TCP_FOR_STREAM, RUEDA_TCP_WANT, {700, 200}},
        {0, 4, 7, RUEDA_TCP_FOR_PULSE, RUEDA_TCP_INSIST, {650, 0}}};
    unsigned char seed[SEED_BYTES];
    size_t len = 0;

    for (size_t i = 0; i < sizeof(tcp_frames) / sizeof(tcp_frames[0]); i++) {
        rueda_tcp_frame_encode(&tcp_frames[i], seed + len);
        len += RUEDA_TCP_HEAD_BYTES;
    }
    save("tcp_frame", "all_kinds", seed, len);
    rueda_tcp_about_encode(&abouts[0], seed);
    rueda_tcp_about_encode(&abouts[1], seed + RUEDA_TCP_ABOUT_BYTES);
    save("tcp_about", "two", seed, (size_t)2 * RUEDA_TCP_ABOUT_BYTES);
    save("tcp_ep", "all", endpoint_steps, sizeof(endpoint_steps));
    save("tcp_ep", "message", endpoint_steps, 3 * sizeof(endpoint_steps[0]));
    len = 4 * sizeof(endpoint_steps[0]);
    memcpy(seed, endpoint_steps, len);
    seed[len] = 0;
    seed[len + 1] = 1;
    save("tcp_ep", "sealed", seed, len + 1);
    seed[len] = 1;
    save("tcp_ep", "badly_sealed", seed, len + 1);
    save("tcp_ep", "badly_proven", seed, len + 2);
    save("tcp_pair", "plain", pair_steps, sizeof(pair_steps));
}

/* A short message, a long one whose body is behind its head, and the last; and
 * answers to what was sent long ago. */
static void save_talk(void)
{
    const size_t head = RUEDA_TALK_HEAD;
    const size_t body = 200 - (head - RUEDA_TALK_PREFIX);
    unsigned char seed[4 * RUEDA_TALK_HEAD] = {0};

    rueda_put_u32(seed, 5);
    rueda_put_u64(seed + 8, 3);
    rueda_put_u64(seed + 16, 900000000);
    rueda_put_u32(seed + head, 200);
    rueda_put_u64(seed + head + 24, 1000000000);
    rueda_put_u64(seed + head + 32, 5000);
    rueda_put_u32(seed + 2 * head + body + 4, 1);
    save("talk", "three", seed, sizeof(seed));
    memset(seed, 0, sizeof(seed));
    for (size_t i = 0; i < 4; i++)
        rueda_put_u64(seed + i * head + 24,
                      (uint64_t)INT64_MAX + 2 + i * 1000000000);
    save("talk", "long_ago", seed, sizeof(seed));
}

/* ---- The timeline ------------------------------------------------------- */

static void save_timeline(void)
{
    static const struct rueda_timeline_record records[] = {
        {.what = RUEDA_TIMELINE_NAME,
         .id = 1,
         .name = "a\"\xc3",
         .name_len = 3},
        {.what = RUEDA_TIMELINE_BEGIN,
         .activity = RUEDA_TIMELINE_NEGOTIATE_ALLREDUCE,
         .id = 1,
         .time_ns = 2000},
        {.what = RUEDA_TIMELINE_ARRIVAL, .id = 1, .time_ns = 2001, .rank = 2},
        {.what = RUEDA_TIMELINE_END, .id = 1, .time_ns = 2002, .dims = -1},
        {.what = RUEDA_TIMELINE_BEGIN,
         .activity = RUEDA_TIMELINE_ALLREDUCE,
         .id = 1,
         .time_ns = 2003},
        {.what = RUEDA_TIMELINE_BEGIN,
         .activity = RUEDA_TIMELINE_QUEUE,
         .id = 1,
         .time_ns = 2004},
        {.what = RUEDA_TIMELINE_END,
         .id = 1,
         .time_ns = 2005,
         .dtype = RUEDA_FLOAT32,
         .dims = 2,
         .shape = {3, 4}},
        {.what = RUEDA_TIMELINE_CYCLE, .time_ns = 2006},
        {.what = RUEDA_TIMELINE_LOST, .time_ns = 2007, .lost = 5},
    };
    unsigned char seed[SEED_BYTES];
    size_t len = 0;

    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
        len += rueda_timeline_write(&records[i], seed + len);
    seed[len++] = 0; /* the block is not cut */
    seed[len++] = 1;
    save("timeline", "all_kinds", seed, len);
    /* Of two ranks: the second one says nothing but the name. */
    seed[len - 2] = (unsigned char)(len - 2);
    save("timeline", "rank_0", seed, len);
}

/* ---- Tables and cards --------------------------------------------------- */

static const char contact[] = "10.1.2.3:4000"; /* of every rank */

static const char decision[] = "311allreduce:0-4k:tree;allreduce:ring";

/* What rank 0 says of it; the choice is the number of ranks. */
static void save_announcement(const char *name,
                              const struct rueda_topology *topology)
{
    unsigned char seed[SEED_BYTES] = {'t'};
    size_t table = rueda_topology_bytes(topology);
    size_t len = 1 + RUEDA_NONCE_BYTES;

    rueda_put_u64(seed + len, 1 << 24); /* settings */
    rueda_put_u32(seed + len + 8, 1024);
    len += 12;
    rueda_put_u32(seed + len, (uint32_t)table);
    rueda_put_u16(seed + len + 4, sizeof(decision) - 1);
    len += 6;
    rueda_topology_pack(topology, seed + len);
    len = add(seed, len + table, decision, sizeof(decision) - 1);
    for (int i = 0; i < topology->size; i++)
        len = add(seed, len, contact, sizeof(contact));
    seed[len++] = (unsigned char)topology->size;
    save("rollcall", name, seed, len);
}

static void save_table(const char *name, int size, int hosts, bool is_said)
{
    struct rueda_topology_record records[8] = {0};
    struct rueda_self self = {.contact = contact,
                              .contact_bytes = sizeof(contact) - 1,
                              .sets = "0123456789abcdef 0,2;1"};
    struct rueda_topology *topology;
    unsigned char seed[SEED_BYTES];
    struct rueda_text error = {{0}};

    for (int i = 0; i < size; i++) {
        records[i].host[0] = (unsigned char)(i % hosts);
        snprintf(records[i].name, sizeof(records[i].name), "n%d", i % hosts);
        records[i].local_rank = is_said ? i / hosts : -1;
        records[i].local_size = is_said ? size / hosts : -1;
    }
    must(rueda_topology_new(records, size, &topology, &error) == RUEDA_OK);
    rueda_topology_pack(topology, seed);
    save("topology", name, seed, rueda_topology_bytes(topology));
    save_announcement(name, topology);
    rueda_topology_free(topology);
    save("topology", "record", seed,
         rueda_topology_record_pack(&records[size - 1], seed));
    self.record = records[size - 1];
    save("rollcall", "rank", seed, rueda_rollcall_write_rank(&self, seed));
}

static void save_card(const char *name, bool has_key)
{
    struct rueda_business_card card = {.nonce = "nonce",
                                       .key = {{9, 8, 7}, has_key}};
    unsigned char seed[RUEDA_BUSINESS_CARD_PACKED];

    snprintf(card.addresses, sizeof(card.addresses),
             "10.1.2.3:4000 [2001:db8::1]:4001");
    rueda_business_card_pack(&card, seed);
    save("business_card", name, seed, sizeof(seed));
}

/* ---- Elastic jobs ----------------------------------------------------- */

static void save_place(void)
{
    const struct rueda_rendezvous_ranks place = {.term = 7,
                                                 .rank = 4,
                                                 .size = 6,
                                                 .local_rank = 1,
                                                 .local_size = 3,
                                                 .cross_size = 2};
    const struct rueda_rendezvous_change change = {.term = 7, .flags = 3};
    unsigned char bytes[1 + RUEDA_TEXT_BYTES];

    rueda_rendezvous_write(&place, bytes);
    save("rendezvous", "ranks", bytes, RUEDA_RENDEZVOUS_BYTES);
    save("rendezvous", "refusal", bytes,
         rueda_rendezvous_write_refusal("not any more", bytes));
    rueda_rendezvous_change_write(&change, bytes);
    save("rendezvous", "change", bytes, RUEDA_RENDEZVOUS_CHANGE_BYTES);
}

/* ---- The launcher's frames ---------------------------------------------- */

static void save_assignment(void)
{
    struct rueda_strings rank = {.list = NULL};
    struct rueda_assignment assignment = {.size = 2,
                                          .first_rank = 1,
                                          .count = 1,
                                          .has_input = true,
                                          .grace_ms = 5000,
                                          .folder = "/tmp",
                                          .ranks = &rank};
    struct rueda_packer packer;

    rueda_strings_add(&rank, "RUEDA_RANK=1");
    rueda_strings_add(&assignment.command, "python");
    rueda_strings_add(&assignment.command, "train.py");
    rueda_strings_add(&assignment.stores, "10.0.0.1:4000");
    rueda_strings_add(&assignment.variables, "A=1");
    rueda_packer_begin(&packer, RUEDA_FRAME_START);
    rueda_assignment_pack(&assignment, &packer);
    rueda_packer_end(&packer);
    must(!packer.is_short);
    save("launch_frame", "assignment", packer.bytes, packer.len);
    rueda_packer_fini(&packer);
    rueda_packer_begin(&packer, RUEDA_FRAME_OUTPUT);
    rueda_frame_pack_number(&packer, 1);
    rueda_frame_pack_number(&packer, 2);
    rueda_frame_pack_text(&packer, "a line\n");
    rueda_packer_end(&packer);
    must(!packer.is_short);
    save("launch_frame", "output", packer.bytes, packer.len);
    rueda_packer_fini(&packer);
    assignment.ranks = NULL;
    rueda_assignment_fini(&assignment);
    rueda_strings_fini(&rank);
}

/* ---- Negotiation --------------------------------------------------------- */

/* A step of fuzz_negotiate.c: who, and what it says. */
static void add_step(struct rueda_out *input, uint8_t who,
                     const struct rueda_out *message)
{
    rueda_out_u8(input, who);
    rueda_out_u8(input, (uint8_t)message->len);
    rueda_out_bytes(input, message->bytes, message->len);
}

static const struct rueda_request tensor = {
    .kind = RUEDA_ALLREDUCE, .dims = 1, .shape = {4}, .name = "a"};

/* Both children have it; so has the coordinator, which decides. */
static void save_negotiation_up(void)
{
    struct rueda_out message = {0};
    struct rueda_out input = {0};

    rueda_out_u8(&message, RUEDA_UP_FULL);
    rueda_out_u32(&message, 2);
    rueda_out_u8(&message, 1);
    rueda_out_u32(&message, 2);
    rueda_out_request(&message, &tensor);
    add_step(&input, 0, &message);
    add_step(&input, 1, &message);
    rueda_out_bytes(&input, "\3\0\6\0\5\0", 6);
    message.len = 0;
    rueda_out_u8(&message, RUEDA_UP_READY);
    rueda_out_u32(&message, 0);
    rueda_out_u32(&message, 1);
    rueda_out_u8(&message, RUEDA_UP_JOINED);
    rueda_out_u32(&message, 2);
    add_step(&input, 0, &message);
    rueda_out_u8(&input, 2 << 1);
    save("negotiate", "up", input.bytes, input.len);
    rueda_out_fini(&message);
    rueda_out_fini(&input);
}

/* What comes down to a member that has it. */
static void save_negotiation_down(void)
{
    struct rueda_out message = {0};
    struct rueda_out input = {0};

    rueda_out_bytes(&input, "\3\0", 2);
    rueda_out_u8(&message, RUEDA_DOWN_RUN);
    rueda_out_u32(&message, 5);
    rueda_out_u32(&message, 1);
    rueda_out_u8(&message, RUEDA_ITEM_NEW);
    rueda_out_u32(&message, 0);
    rueda_out_request(&message, &tensor);
    add_step(&input, 2, &message);
    rueda_out_bytes(&input, "\5\0\3\0", 4);
    message.len = 0;
    rueda_out_u8(&message, RUEDA_DOWN_ERROR);
    rueda_out_u8(&message, 1);
    rueda_out_text(&message, "a");
    rueda_out_text(&message, "why");
    rueda_out_u8(&message, RUEDA_DOWN_WORD);
    rueda_out_u64(&message, 5);
    rueda_out_u8(&message, RUEDA_DOWN_RETIRE);
    rueda_out_u32(&message, 0);
    add_step(&input, 2, &message);
    rueda_out_u8(&input, 2 << 1 | 1);
    save("negotiate", "down", input.bytes, input.len);
    rueda_out_fini(&message);
    rueda_out_fini(&input);
}

static void out_vain(struct rueda_out *message)
{
    rueda_out_u8(message, RUEDA_UP_MISMATCH);
    rueda_out_label(message, "v", 0);
    rueda_out_u64(message, 0);
    rueda_out_text(message, "why");
}

static void out_blank(struct rueda_out *message)
{
    rueda_out_u8(message, RUEDA_UP_BLANK);
    rueda_out_label(message, "v", 0);
    rueda_out_u32(message, 2);
}

/* A child has what no other member has, which the coordinator calls; both say
 * that they have not got it. The first says so again, and only half of it. */
static void save_negotiation_vain(void)
{
    struct rueda_out message = {0};
    struct rueda_out input = {0};

    out_vain(&message);
    add_step(&input, 0, &message);
    rueda_out_bytes(&input, "\6\0", 2);
    message.len = 0;
    out_blank(&message);
    add_step(&input, 0, &message);
    add_step(&input, 1, &message);
    rueda_out_bytes(&input, "\6\0\5\0", 4);
    message.len -= 2;
    add_step(&input, 0, &message);
    rueda_out_u8(&input, 2 << 1);
    save("negotiate", "mismatch", input.bytes, input.len);
    rueda_out_fini(&message);
    rueda_out_fini(&input);
}

static void out_error(struct rueda_out *message, const char *name,
                      uint64_t number)
{
    rueda_out_u8(message, RUEDA_DOWN_ERROR);
    rueda_out_label(message, name, number);
    rueda_out_text(message, "why");
}

/* A member gets what is called, with another of its group that fails first. */
static void save_negotiation_call(void)
{
    struct rueda_out message = {0};
    struct rueda_out input = {0};

    rueda_out_u8(&message, RUEDA_DOWN_CALL);
    rueda_out_label(&message, "d", 0);
    rueda_out_u8(&message, RUEDA_DOWN_CALL);
    rueda_out_label(&message, NULL, 7);
    add_step(&input, 2, &message);
    rueda_out_bytes(&input, "\3\3\3\4", 4);
    message.len = 0;
    out_error(&message, "c", 0);
    out_error(&message, "d", 0);
    out_error(&message, NULL, 7);
    add_step(&input, 2, &message);
    rueda_out_bytes(&input, "\3\2", 2);
    message.len = 0;
    out_error(&message, "d", 0);
    add_step(&input, 2, &message);
    rueda_out_u8(&input, 2 << 1 | 1);
    save("negotiate", "call", input.bytes, input.len);
    rueda_out_fini(&message);
    rueda_out_fini(&input);
}

int main(int argc, char **argv)
{
    must(argc == 2);
    root = argv[1];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        save(texts[i].target, texts[i].name, texts[i].text, texts[i].len);
    save_settings();
    save_handshakes();
    save_streams();
    save_talk();
    save_timeline();
    save_frames();
    save_limits();
    save_table("one", 1, 1, false);
    save_table("hosts", 8, 2, true);
    save_card("key", true);
    save_card("no_key", false);
    save_assignment();
    save_place();
    save_negotiation_up();
    save_negotiation_down();
    save_negotiation_vain();
    save_negotiation_call();
    return 0;
}
