/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of ranks: which of our variables go to another host, and the
 * RUEDA_*, HOROVOD_* and torchrun variables of each rank.
 */
#include "launch/variables.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Forwarding --------------------------------------------------------- */

/* Of this host or session: of no use elsewhere, or wrong there. */
static const char *const stay_here[] = {
    "BASH_FUNC_*", "OLDPWD",
    "PWD",         "SHLVL",
    "_",           "*CUDA_VISIBLE_DEVICES",
    "HOME",        "USER",
    "LOGNAME",     "SHELL",
    "MAIL",        "HOSTNAME",
    "SSH_*",       "DISPLAY",
    "XAUTHORITY",  "XDG_*",
    "DBUS_*",      "_HOROVOD_SECRET_KEY",
    "RUEDA_KEY_*", "RUEDA_SEGMENT_*",
};

const char *const rueda_variables_of_torchrun[] = {
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_NAME",
    "ROLE_WORLD_SIZE",
    NULL,
};

static bool stays_here(const char *variable)
{
    const size_t len = strcspn(variable, "=");
    char name[256];

    if (len == 0 || len >= sizeof(name) || variable[len] == '\0')
        return true;
    memcpy(name, variable, len);
    name[len] = '\0';
    for (size_t i = 0; i < sizeof(stay_here) / sizeof(stay_here[0]); i++)
        if (fnmatch(stay_here[i], name, 0) == 0)
            return true;
    return false;
}

void rueda_variables_forward(char *const *environment,
                             struct rueda_strings *out)
{
    for (; *environment != NULL; environment++)
        if (!stays_here(*environment))
            rueda_strings_add(out, *environment);
    for (int i = 0; rueda_variables_of_torchrun[i] != NULL; i++)
        rueda_strings_unset(out, rueda_variables_of_torchrun[i]);
}

/* ---- For all ranks ------------------------------------------------------ */

static void set_option(void *arg, const char *name, const char *value)
{
    rueda_strings_set(arg, name, value);
}

/* Horovod takes the name of one interface, NCCL those of several. */
static void set_first(const char *names, struct rueda_strings *out)
{
    char first[64];

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(names, ","), names);
    rueda_strings_set(out, "HOROVOD_GLOO_IFACE", first);
}

/* A network in digits is ours alone; agents find the names for it. */
static void set_interfaces(const char *list, struct rueda_strings *out)
{
    if (strchr(list, '/') != NULL)
        return;
    set_first(list, out);
    rueda_strings_set(out, "NCCL_SOCKET_IFNAME", list);
}

void rueda_variables_common(const struct rueda_options *options,
                            struct rueda_strings *out)
{
    const char *network = options->values[RUEDA_OPTION_NETWORK];

    rueda_strings_set(out, "HOROVOD_CONTROLLER", "gloo");
    rueda_strings_set(out, "HOROVOD_CPU_OPERATIONS", "gloo");
    rueda_strings_set(out, "PYTHONUNBUFFERED", "1");
    if (network != NULL)
        set_interfaces(network, out);
    rueda_options_export(options, set_option, out);
}

bool rueda_variables_is_network(const char *network)
{
    return network != NULL && network[0] != '\0' && strcmp(network, "all") != 0;
}

/* Between hosts loopback is never wanted: it comes from a job of one host, one
 * of whose ranks has started this launcher. */
static bool is_wish(const struct rueda_strings *variables, const char *name,
                    bool is_between_hosts)
{
    const char *value = rueda_strings_get(variables, name);

    return value != NULL && value[0] != '\0' &&
           !(is_between_hosts && strcmp(value, "lo") == 0);
}

void rueda_variables_interfaces(const char *names, bool is_between_hosts,
                                struct rueda_strings *out)
{
    if (!is_wish(out, "NCCL_SOCKET_IFNAME", is_between_hosts))
        rueda_strings_set(out, "NCCL_SOCKET_IFNAME", names);
    if (is_wish(out, "HOROVOD_GLOO_IFACE", is_between_hosts))
        return;
    set_first(names, out);
    if (is_between_hosts &&
        !rueda_variables_is_network(rueda_strings_get(out, "RUEDA_NETWORK")))
        rueda_strings_set(out, "RUEDA_NETWORK", "all");
}

/* ---- For one rank ------------------------------------------------------- */

void rueda_variables_rank(const struct rueda_placed_rank *placed, int size,
                          const char *host, struct rueda_strings *out)
{
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"RANK", placed->rank},
        {"SIZE", size},
        {"LOCAL_RANK", placed->local_rank},
        {"LOCAL_SIZE", placed->local_size},
        {"CROSS_RANK", placed->cross_rank},
        {"CROSS_SIZE", placed->cross_size},
    };
    char name[64];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(name, sizeof(name), "RUEDA_%s", numbers[i].name);
        rueda_strings_set_number(out, name, numbers[i].value);
        snprintf(name, sizeof(name), "HOROVOD_%s", numbers[i].name);
        rueda_strings_set_number(out, name, numbers[i].value);
    }
    rueda_strings_set(out, "HOROVOD_HOSTNAME", host);
}

void rueda_variables_torch(const struct rueda_placed_rank *placed, int size,
                           const char *address, int port,
                           struct rueda_strings *out)
{
    rueda_strings_set_number(out, "RANK", placed->rank);
    rueda_strings_set_number(out, "WORLD_SIZE", size);
    rueda_strings_set_number(out, "LOCAL_RANK", placed->local_rank);
    rueda_strings_set_number(out, "LOCAL_WORLD_SIZE", placed->local_size);
    rueda_strings_set(out, "MASTER_ADDR", address);
    rueda_strings_set_number(out, "MASTER_PORT", port);
}

void rueda_variables_tf_config(const struct rueda_placement *placement,
                               const struct rueda_hosts *hosts, int rank,
                               int port, struct rueda_strings *out)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (file == NULL) {
        out->is_short = true;
        return;
    }
    fputs("{\"cluster\": {\"worker\": [", file);
    for (int i = 0; i < placement->size; i++) {
        const struct rueda_placed_rank *placed = &placement->ranks[i];
        const char *host = hosts->list[placed->host].name;
        const bool is_ipv6 = strchr(host, ':') != NULL;

        fprintf(file, "%s\"%s%s%s:%d\"", i == 0 ? "" : ", ", is_ipv6 ? "[" : "",
                host, is_ipv6 ? "]" : "", port + placed->local_rank);
    }
    fprintf(file, "]}, \"task\": {\"type\": \"worker\", \"index\": %d}}", rank);
    if (fclose(file) == 0)
        rueda_strings_set(out, "TF_CONFIG", text);
    else
        out->is_short = true;
    free(text);
}

/* "[fd00::1]:4000": others want the address without its brackets. */
void rueda_variables_store(const char *store, struct rueda_strings *out)
{
    const char *colon = strrchr(store, ':');
    const int bracket = store[0] == '[';
    char host[128];

    snprintf(host, sizeof(host), "%.*s", (int)(colon - store) - 2 * bracket,
             store + bracket);
    rueda_strings_set(out, "HOROVOD_GLOO_RENDEZVOUS_ADDR", host);
    rueda_strings_set(out, "HOROVOD_GLOO_RENDEZVOUS_PORT", colon + 1);
    rueda_strings_set(out, "RUEDA_STORE", store);
    rueda_strings_set(out, "RUEDA_STORE_KEEPER", "launcher");
}
