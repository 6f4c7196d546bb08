/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/ssh.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

#define KUBEFLOW_AGENT "/etc/mpi/kubexec.sh"

/* In quotes for a shell. */
static void add_quoted(char *out, size_t bytes, const char *text)
{
    size_t len = strlen(out);

    if (len + 4 * strlen(text) + 3 > bytes)
        return;
    out[len++] = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            memcpy(out + len, "'\\''", 4);
            len += 4;
        } else {
            out[len++] = *text;
        }
    }
    out[len++] = '\'';
    out[len] = '\0';
}

static bool is_kubeflow(void)
{
    const char *agent = rueda_environment("OMPI_MCA_plm_rsh_agent");

    return agent != NULL && strcmp(agent, KUBEFLOW_AGENT) == 0;
}

void rueda_ssh_own_path(char *out, size_t bytes)
{
    const ssize_t len = readlink("/proc/self/exe", out, bytes - 1);

    out[len > 0 ? len : 0] = '\0';
}

/* Options are joined with their values. No questions are asked, since many
 * hosts would ask at a time. */
static void add_options(const struct rueda_ssh *ssh, struct rueda_strings *out)
{
    char text[4096];

    rueda_strings_add(out, "-oBatchMode=yes");
    rueda_strings_add(out, "-oServerAliveInterval=10");
    if (ssh->port != NULL) {
        snprintf(text, sizeof(text), "-p%s", ssh->port);
        rueda_strings_add(out, text);
    }
    if (ssh->identity != NULL) {
        snprintf(text, sizeof(text), "-i%s", ssh->identity);
        rueda_strings_add(out, text);
    }
}

/* Whatever the user's shell is there, this is for sh. */
void rueda_ssh_words(const struct rueda_ssh *ssh, const char *host,
                     const char *path, const char *name, const char *arguments,
                     struct rueda_strings *out)
{
    char text[5000];

    rueda_strings_add(out, is_kubeflow() ? KUBEFLOW_AGENT : "ssh");
    if (!is_kubeflow())
        add_options(ssh, out);
    rueda_strings_add(out, host);
    snprintf(text, sizeof(text),
             "exec /bin/sh -c '[ -x \"$0\" ] && exec \"$0\" %s; exec %s %s' ",
             arguments, name, arguments);
    add_quoted(text, sizeof(text), path);
    rueda_strings_add(out, text);
}
