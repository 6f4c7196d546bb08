/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ruedarun agent` does when it has been started on a host: it dials the
 * launcher, or uses the pipe by which it was started, proves the key, and hands
 * the sealed stream to the agent. Its guardian, a parent process, stays to end
 * the ranks if the agent is killed.
 */
#include "launch/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "auth/shake.h"
#include "base/duration.h"
#include "base/near.h"
#include "base/number.h"
#include "launch/agent.h"
#include "launch/family.h"
#include "launch/frame.h"
#include "os/clock.h"
#include "os/dial.h"
#include "os/event.h"
#include "os/machine.h"
#include "os/process.h"
#include "os/stream.h"

#define END_NS   RUEDA_S(3)
#define PAUSE_NS RUEDA_MS(100)
#define SECOND   RUEDA_S(1)

/* Between two questions to the resolver, which all agents may ask. */
#define NAME_PAUSE_NS RUEDA_MS(500)

static const char usage[] =
    "usage: ruedarun agent --join HOST:PORT --key-file FILE [OPTIONS]\n"
    "\n"
    "Runs ranks on this host for a launcher that waits at HOST:PORT, being\n"
    "started there with --listen.\n"
    "\n"
    "  --key-file FILE         the same key as the launcher has\n"
    "  --host NAME             which of the launcher's hosts this is (its own\n"
    "                          name)\n"
    "  --slots N               for an elastic job that does not list this "
    "host:\n"
    "                          room for N ranks (the number of cores)\n"
    "  --start-timeout S       seconds until the launcher has to be there "
    "(30)\n"
    "  --help                  print this text and end\n";

struct request {
    bool is_stdio;
    bool is_help;
    const char *here; /* as stdio, on the launcher's host: its standard error */
    const char *join;
    const char *key_file;
    const char *host;
    const char *slots;
    const char *timeout;
};

/* ---- Words -------------------------------------------------------------- */

static int fail(const struct rueda_text *words, int code)
{
    fprintf(stderr, "ruedarun agent: %s\n", words->chars);
    return code;
}

static bool parse(int argc, char **argv, struct request *out,
                  struct rueda_text *words)
{
    const struct {
        const char *name;
        const char **value;
    } texts[] = {{"--join", &out->join}, {"--key-file", &out->key_file},
                 {"--host", &out->host}, {"--slots", &out->slots},
                 {"--here", &out->here}, {"--start-timeout", &out->timeout}};
    static const char *const known[] = {"--join",  "--key-file",      "--host",
                                        "--slots", "--start-timeout", "--help",
                                        NULL};

    for (int i = 0; i < argc; i++) {
        const size_t len = strcspn(argv[i], "=");
        const char **value = NULL;
        const char *near;

        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
            if (strlen(texts[k].name) == len &&
                strncmp(argv[i], texts[k].name, len) == 0)
                value = texts[k].value;
        if (value != NULL && argv[i][len] == '=') {
            *value = argv[i] + len + 1;
        } else if (value != NULL && i + 1 < argc) {
            *value = argv[++i];
        } else if (value != NULL) {
            rueda_text_set(words, "%s needs a value", argv[i]);
            return false;
        } else if (strcmp(argv[i], "--stdio") == 0) {
            out->is_stdio = true;
        } else if (strcmp(argv[i], "--help") == 0 ||
                   strcmp(argv[i], "-h") == 0) {
            out->is_help = true;
        } else {
            near = rueda_near_match(argv[i], known);
            rueda_text_set(words, "unknown option '%.64s'%s%s%s", argv[i],
                           near != NULL ? "; did you mean '" : "",
                           near != NULL ? near : "", near != NULL ? "'?" : "");
            return false;
        }
    }
    return true;
}

/* ---- The guardian ------------------------------------------------------- */

static volatile sig_atomic_t notified; /* by SIGTERM */

static void on_notice(int number)
{
    (void)number;
    notified = 1;
}

/* SIGTERM is for the agent, which decides what it means. */
static void catch_notice(void)
{
    struct sigaction action = {.sa_handler = on_notice};

    sigaction(SIGTERM, &action, NULL);
}

/* Wait for the agent, and pass SIGTERM on. A signal may come right before the
 * wait, so there is a moment when it is looked for anyway. */
static int wait_for(pid_t agent)
{
    const struct timespec pause = {.tv_nsec = 200000000};
    sigset_t caught;
    int how = 0;

    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    for (;;) {
        const pid_t ended = waitpid(-1, &how, WNOHANG);

        if (ended == agent || (ended < 0 && errno != EINTR))
            return how;
        if (notified != 0) {
            notified = 0;
            kill(agent, SIGTERM);
        }
        if (ended <= 0)
            sigtimedwait(&caught, NULL, &pause);
    }
}

/*
 * The agent runs in a child. If it is killed, we are there to end what it
 * leaves behind: ranks die with it, but their children come to us.
 */
static int run_guarded(const struct rueda_agent_args *args)
{
    const pid_t guardian = getpid();
    pid_t agent;
    int how = 0;

    rueda_family_adopt();
    agent = fork();
    if (agent > 0)
        catch_notice();
    if (agent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        /* A guardian that was killed before that sends no signal any more. */
        if (getppid() != guardian)
            exit(1);
        exit(rueda_agent_run(args));
    }
    rueda_fd_close(args->in);
    if (args->words > STDERR_FILENO)
        rueda_fd_close(args->words);
    if (args->out != args->in)
        rueda_fd_close(args->out);
    if (agent > 0)
        how = wait_for(agent);
    rueda_family_end(END_NS);
    return agent > 0 && WIFEXITED(how) ? WEXITSTATUS(how) : 1;
}

/* ---- By ssh ------------------------------------------------------------- */

static int serve_stdio(const char *here)
{
    struct rueda_agent_args args = {.in = STDIN_FILENO,
                                    .out = STDOUT_FILENO,
                                    .input = -1,
                                    .words = STDERR_FILENO,
                                    .is_by_ssh = here == NULL};
    static const char mark[] = RUEDA_AGENT_MARK;

    /* The ranks are not to keep it open. */
    if (here != NULL && rueda_parse_int(here, &args.words))
        fcntl(args.words, F_SETFD, FD_CLOEXEC);
    if (write(STDOUT_FILENO, mark, strlen(mark)) != (ssize_t)strlen(mark))
        return 1;
    return run_guarded(&args);
}

/* ---- By ourselves ------------------------------------------------------- */

/* What only this agent and the launcher know. */
struct secrets {
    struct rueda_key key;
    struct rueda_key session;
};

/* Take the handshake over the dialler's connection further; an agreement that
 * fails is said in words. */
static rueda_status shake_hands(struct rueda_dial *dial,
                                struct rueda_handshake *shake,
                                struct rueda_text *words)
{
    const rueda_status status = rueda_shake_step(dial->fd, shake);
    int cause = status == RUEDA_ERR_IO ? errno : ECONNRESET;

    if (status == RUEDA_OK || status == RUEDA_IN_PROGRESS)
        return status;
    if (status == RUEDA_ERR_AUTH || status == RUEDA_ERR_VERSION) {
        words->chars[0] = '\0';
        rueda_text_set(words, "the launcher and this agent do not agree: %s",
                       rueda_handshake_error(shake));
        cause = EACCES;
    }
    rueda_dial_fail(dial, cause, NULL, rueda_clock_ns());
    return status;
}

/* Dial until then. Returns the connection, or -1. */
static int dial_launcher(struct rueda_dial *dial, struct secrets *secrets,
                         const char *host, int64_t deadline,
                         struct rueda_text *words)
{
    struct rueda_handshake shake = {.status = RUEDA_IN_PROGRESS};
    rueda_status status = RUEDA_IN_PROGRESS;
    bool is_new;

    while (rueda_clock_ns() < deadline &&
           !rueda_dial_is_refused(dial, rueda_clock_ns())) {
        status = rueda_dial_step(dial, rueda_clock_ns(), &is_new);
        if (is_new) {
            rueda_socket_keep_alive(dial->fd, RUEDA_AGENT_QUESTIONS);
            rueda_handshake_fini(&shake);
            status = rueda_handshake_init(&shake, RUEDA_INITIATOR,
                                          RUEDA_FOR_LAUNCHER, &secrets->key,
                                          host, strlen(host));
        }
        if (status == RUEDA_OK)
            status = shake_hands(dial, &shake, words);
        if (status == RUEDA_OK) {
            secrets->session = *rueda_handshake_session_key(&shake);
            break;
        }
        rueda_dial_wait(dial, deadline);
    }
    rueda_handshake_fini(&shake);
    return status == RUEDA_OK ? rueda_dial_take(dial) : -1;
}

/* The launcher may be started after us, and so may its name come later. */
static int find_launcher(const char *join, struct rueda_address *out, int room,
                         int64_t deadline, struct rueda_text *words)
{
    for (;;) {
        struct rueda_text why = {{0}};
        const int count = rueda_address_find(join, out, room, &why);

        if (count > 0)
            return count;
        if (rueda_clock_ns() + NAME_PAUSE_NS >= deadline) {
            rueda_text_set(words, "%s", why.chars);
            return 0;
        }
        rueda_sleep_ns(NAME_PAUSE_NS);
    }
}

static int reach_launcher(const struct request *request,
                          struct secrets *secrets, const char *host,
                          int64_t deadline, struct rueda_text *words)
{
    struct rueda_address addresses[8];
    const struct rueda_dial_args args = {
        .addresses = addresses,
        .address_count =
            find_launcher(request->join, addresses, 8, deadline, words),
        .first_pause_ns = PAUSE_NS,
        .most_pause_ns = PAUSE_NS,
        .limit_ns = INT64_MAX};
    struct rueda_dial dial;
    int fd;

    if (args.address_count == 0)
        return -1;
    rueda_dial_init(&dial, &args, 0, rueda_clock_ns());
    fd = dial_launcher(&dial, secrets, host, deadline, words);
    rueda_dial_fini(&dial);
    if (fd >= 0 || dial.refused_for > 0)
        return fd;
    words->chars[0] = '\0';
    rueda_text_set(words,
                   "no launcher came to %s in time (%s); is it started with "
                   "--listen, and can this host reach it?",
                   request->join,
                   rueda_text_is_empty(&dial.why) ? "no answer"
                                                  : dial.why.chars);
    return -1;
}

/* Is all of it said as it should be? False with words. */
static bool check(const struct request *request, const char *host,
                  int *out_seconds, int *out_slots, struct rueda_text *words)
{
    *out_seconds = 30;
    if (request->join == NULL || request->key_file == NULL)
        rueda_text_set(words, "--join HOST:PORT and --key-file FILE are "
                              "needed; see --help");
    else if (strlen(host) > RUEDA_HANDSHAKE_ABOUT_MAX)
        rueda_text_set(words, "the name of this host is too long; take a "
                              "shorter one with --host");
    else if (request->timeout != NULL &&
             (!rueda_parse_int(request->timeout, out_seconds) ||
              *out_seconds < 1))
        rueda_text_set(words,
                       "--start-timeout takes a whole number from 1 up, not "
                       "'%.64s'",
                       request->timeout);
    else if (request->slots != NULL &&
             (!rueda_parse_int(request->slots, out_slots) || *out_slots < 1))
        rueda_text_set(words,
                       "--slots takes a whole number from 1 up, not '%.64s'",
                       request->slots);
    else
        return rueda_address_is_wellformed(request->join, words);
    return false;
}

static int count_cores(void)
{
    struct rueda_cpus cpus;

    rueda_machine_cpus(&cpus);
    return rueda_cpus_count(&cpus);
}

static int join(const struct request *request)
{
    struct rueda_agent_args args = {
        .input = -1, .words = STDERR_FILENO, .slots = count_cores()};
    struct rueda_text words = {{0}};
    struct secrets secrets = {.key = {.present = false}};
    char host[256];
    int seconds;
    int code;

    snprintf(host, sizeof(host), "%s",
             request->host != NULL ? request->host : "");
    if (host[0] == '\0')
        rueda_process_host(host, sizeof(host));
    if (!check(request, host, &seconds, &args.slots, &words) ||
        rueda_key_read_file(request->key_file, &words, &secrets.key) !=
            RUEDA_OK)
        return fail(&words, 2);
    args.in = reach_launcher(request, &secrets, host,
                             rueda_clock_ns() + seconds * SECOND, &words);
    args.out = args.in;
    args.key = &secrets.key;
    args.session = &secrets.session;
    code = args.in < 0 ? fail(&words, 1) : run_guarded(&args);
    rueda_key_wipe(&secrets.key);
    rueda_key_wipe(&secrets.session);
    return code;
}

int rueda_serve_main(int argc, char **argv)
{
    struct request request = {.join = NULL};
    struct rueda_text words = {{0}};

    if (!parse(argc, argv, &request, &words))
        return fail(&words, 2);
    if (request.is_help) {
        fputs(usage, stdout);
        return 0;
    }
    if (request.is_stdio || request.here != NULL)
        return serve_stdio(request.here);
    return join(&request);
}
