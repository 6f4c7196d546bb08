/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts of the program `rueda`. */
#include "tool/help.h"

static const char general[] =
    "usage: rueda COMMAND [OPTIONS]\n"
    "\n"
    "commands\n"
    "  bench [OPERATION]     measure collectives on this host, beside MPI\n"
    "  doctor [-H HOSTS]     check for what would stop or slow a job, with "
    "fixes\n"
    "  info                  describe the library and this machine\n"
    "  info --config         all settings, their values and defaults\n"
    "  info --job            which launcher, rank and size are found here\n"
    "  key FILE              make a key for a job of several hosts\n"
    "  sim --model NAME      predict how a model trains on a cluster\n"
    "\n"
    "options\n"
    "  --version             print the version and exit\n"
    "  --help                print this text and exit; 'rueda bench --help' "
    "for more\n";

static const char bench[] =
    "usage: rueda bench [OPERATION] [OPTIONS]\n"
    "\n"
    "Starts ranks on this host, measures, checks every answer, and prints a\n"
    "table. Started by a launcher, such as mpirun or srun, as one of several\n"
    "ranks, it is that rank, and rank 0 prints; --np is then ignored.\n"
    "\n"
    "operations\n"
    "  allreduce (default), allgather, broadcast, alltoall, reducescatter,\n"
    "  barrier, pingpong (broadcasts with rank 0 and rank 1 as root in turn;\n"
    "  one of them is half a round trip), or step: named tensors, with "
    "options\n"
    "  of its own ('rueda bench step --help')\n"
    "\n"
    "what runs\n"
    "  --np N                ranks (default: the usable cores, at least 2)\n"
    "  --transport NAME      auto or shm, messages, tcp, loop (threads)\n"
    "  --algo NAME           one algorithm for all sizes (default: the\n"
    "                        library chooses)\n"
    "  --alloc KIND          private or shared memory (rueda_alloc)\n"
    "  --bind KIND           core: rank r of every side is bound to the r-th\n"
    "                        usable core; none (default): it begins each turn\n"
    "                        there and may move; free: left to the kernel\n"
    "\n"
    "where, instead of this host\n"
    "  --hosts LIST          hosts with their numbers of ranks, such as "
    "a:2,b:2;\n"
    "                        network namespaces of this machine\n"
    "  --rsh PROGRAM         starts commands there: PROGRAM HOST COMMAND...\n"
    "\n"
    "on what\n"
    "  --dtype TYPE          float32 (default), float64, float16, bfloat16,\n"
    "                        int8, uint8, int16, uint16, int32, int64, bool\n"
    "  --reduction NAME      sum (default), average, min, max, product, "
    "adasum\n"
    "  --min SIZE            first size (default 8)\n"
    "  --max SIZE            last size (default 128m); k, m, g are powers of\n"
    "                        1024. Sizes count all pieces of a rank.\n"
    "  --factor N            from a size to the next (default 8; 4 to tune)\n"
    "\n"
    "compared with\n"
    "  --vs LIST             openmpi, mpich, memcpy, raw, algo:NAME, private,\n"
    "                        separated by commas; raw is two processes that\n"
    "                        pass the same bytes by sockets; algo:NAME is\n"
    "                        Rueda itself with that algorithm; private is "
    "Rueda\n"
    "                        itself with private memory, and goes with "
    "--alloc\n"
    "                        shared\n"
    "  --rounds N            turns of each system at each size (15, or as\n"
    "                        many as fit in 10 s, but at least 5)\n"
    "\n"
    "results\n"
    "  --json FILE           the table as an array of objects\n"
    "  --tune [FILE]         try every algorithm and write rows of the best\n"
    "                        ones for RUEDA_TUNE_FILE\n"
    "  --help                print this text and end\n";

static const char doctor[] =
    "usage: rueda doctor [-H HOSTS | --hostfile FILE] [OPTIONS]\n"
    "\n"
    "Checks this host, or these hosts: ssh, versions, limits, memory, "
    "GPUs,\n"
    "networks; then starts two ranks on each that answers, which prove the\n"
    "job's key and measure every pair of hosts. Prints a table, and for each\n"
    "problem the fix. Nothing is changed.\n"
    "\n"
    "  -H LIST               hosts with their numbers of ranks, as for\n"
    "                        ruedarun: a:4,b:4; or only names\n"
    "  --hostfile FILE       the same from a file, lines of \"a slots=4\"\n"
    "  -p PORT               ssh's port\n"
    "  -i FILE               the key that ssh is to use\n"
    "  --network-interfaces LIST\n"
    "                        which networks ranks may use: eth0,10.1.0.0/16\n"
    "  --timeout S           seconds to wait for a host's answer (15)\n"
    "  --json FILE           everything, for programs\n"
    "  --help                print this text and end\n"
    "\n"
    "Exit code: 0 all is well, or there are only warnings; 1 something would\n"
    "stop a job; 2 an error on the command line.\n";

static const char step[] =
    "usage: rueda bench step [OPTIONS]\n"
    "\n"
    "A step of many named tensors beside one bare allreduce of as many bytes;\n"
    "then the same for one small and one large tensor. Started by a launcher "
    "as\n"
    "one of several ranks, it is that rank.\n"
    "\n"
    "  --np N                ranks on this host (2)\n"
    "  --tensors N           tensors of a step (400)\n"
    "  --bytes SIZE          of each (4096)\n"
    "  --rounds N            turns of each way (200)\n"
    "  --large N             turns at 128 MiB (21); 0 skips them\n"
    "  --idle SECONDS        then do nothing for this long, and report CPU "
    "time\n"
    "  --json FILE           the results as an object\n"
    "  --help                print this text and end\n";

static const char info[] =
    "usage: rueda info [--config [--markdown] | --job]\n"
    "\n"
    "  --config              the settings: name, value, default, meaning\n"
    "  --markdown            the same as a table for docs/config.md, without\n"
    "                        the values\n"
    "  --job                 my seat in the job, as the launcher's variables\n"
    "                        say it: the launcher of this process, its rank,\n"
    "                        and how the ranks will find each other\n"
    "  --help                print this text and end\n";

static const char key[] =
    "usage: rueda key FILE\n"
    "\n"
    "Writes a new key to FILE, which must not exist and which only you may\n"
    "read. Copy it to every host of the job and set RUEDA_KEY_FILE to it.\n";

static const char sim[] =
    "usage: rueda sim --model NAME|FILE [OPTIONS]\n"
    "\n"
    "Predicts how a model would train on a cluster: the library's own "
    "negotiation,\n"
    "fusion and algorithms run in virtual time. Prints a row for 1, 2, 4 ... "
    "ranks\n"
    "and each algorithm.\n"
    "\n"
    "the cluster\n"
    "  --hosts N             hosts (1)\n"
    "  --ranks-per-host N    ranks of each (1)\n"
    "  --link RATE,LATENCY   of a host: 25gbit,10us (100gbit,5us)\n"
    "  --local RATE,LATENCY  of a rank inside its host (20GB/s,500ns)\n"
    "  --topology FILE       all of these, and racks (docs/simulator.md)\n"
    "  --ranks LIST          only these numbers of ranks: 1,8,64\n"
    "\n"
    "the training\n"
    "  --model NAME          resnet50, resnet101, inception3, vgg16, "
    "bert-large,\n"
    "                        or a file (docs/scaling.md)\n"
    "  --list-models         list them; --show-model prints one\n"
    "  --compute-ms MS       what a step of one rank takes (the model's); or "
    "from\n"
    "                        how many ranks on: 1:250,4:290\n"
    "  --jitter PERCENT      each takes up to so much more or less (0)\n"
    "  --algo LIST           auto, hier, ring, halving_doubling, doubling "
    "(each)\n"
    "  --compression KIND    on the wire: none, fp16, bf16\n"
    "  --fusion-bytes SIZE   as RUEDA_FUSION_BYTES (16m)\n"
    "  --overhead TIME       of a rank, for each message (2us)\n"
    "  --arithmetic RATE     of a rank, for sums and copies (24GB/s)\n"
    "  --steps N             of which the first one does not count (2)\n"
    "  --seed N              of all that is random (1)\n"
    "\n"
    "bad days; all may be repeated\n"
    "  --straggler RANK:FACTOR\n"
    "                        its computation takes FACTOR times as long\n"
    "  --kill RANK@TIME      it dies: 3@250ms\n"
    "  --unplug HOST@FROM-UNTIL\n"
    "                        its link carries nothing: 2@100ms-150ms\n"
    "\n"
    "results\n"
    "  --json FILE           everything, for programs\n"
    "  --plot FILE           efficiency over ranks, as an SVG\n"
    "  --measured FILE       lines of ranks and milliseconds of a step, to "
    "compare\n"
    "  --jobs N              simulations at a time (the cores)\n"
    "  --help                print this text and end\n";

const char *rueda_tool_sim_help(void)
{
    return sim;
}

const char *rueda_help(void)
{
    return general;
}

const char *rueda_bench_help(void)
{
    return bench;
}

const char *rueda_doctor_help(void)
{
    return doctor;
}

const char *rueda_info_help(void)
{
    return info;
}

const char *rueda_tool_key_help(void)
{
    return key;
}

const char *rueda_step_help(void)
{
    return step;
}
