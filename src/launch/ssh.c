/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/ssh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

#define KUBEFLOW_AGENT "/etc/mpi/kubexec.sh"

/* In quotes for a shell. */
static void print_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
    fputc('\'', out);
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
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (file == NULL) {
        out->is_short = true;
        return;
    }
    rueda_strings_add(out, is_kubeflow() ? KUBEFLOW_AGENT : "ssh");
    if (!is_kubeflow())
        add_options(ssh, out);
    rueda_strings_add(out, host);
    fprintf(file,
            "exec /bin/sh -c '[ -x \"$0\" ] && exec \"$0\" %s; exec %s %s' ",
            arguments, name, arguments);
    print_quoted(file, path);
    if (fclose(file) == 0)
        rueda_strings_add(out, text);
    else
        out->is_short = true;
    free(text);
}
