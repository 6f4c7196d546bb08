/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: what the driver tells in /proc, and what its library says of them. */
#include <dirent.h>
#include <stdio.h>

#include "base/config.h"
#include "os/file.h"
#include "os/library.h"
#include "tool/doctor/facts.h"
#include "tool/doctor/judge.h"

#define DRIVER "/proc/driver/nvidia"

static int entries_in(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int count = 0;

    if (dir == NULL)
        return 0;
    for (entry = readdir(dir); entry != NULL; entry = readdir(dir))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* The library stays open: some versions do not survive being closed. */
static void ask_library(struct rueda_gpus *out)
{
    void *library = rueda_library_open("libcuda.so.1");
    int (*init)(unsigned) = NULL;
    int (*version)(int *) = NULL;
    int (*count)(int *) = NULL;
    int (*get)(int *, int) = NULL;
    int (*name)(char *, int, int) = NULL;
    int device;

    if (library == NULL ||
        rueda_library_function(library, "cuInit", &init) != RUEDA_OK ||
        rueda_library_function(library, "cuDriverGetVersion", &version) !=
            RUEDA_OK ||
        rueda_library_function(library, "cuDeviceGetCount", &count) !=
            RUEDA_OK ||
        rueda_library_function(library, "cuDeviceGet", &get) != RUEDA_OK ||
        rueda_library_function(library, "cuDeviceGetName", &name) != RUEDA_OK)
        return;
    out->has_library = true;
    version(&out->version);
    out->error = init(0);
    if (out->error != 0 || count(&out->visible_count) != 0 ||
        out->visible_count == 0)
        return;
    if (get(&device, 0) != 0 ||
        name(out->name, (int)sizeof(out->name), device) != 0)
        snprintf(out->name, sizeof(out->name), "GPU");
}

bool rueda_facts_has_gpus(void)
{
    return entries_in(DRIVER "/gpus") > 0;
}

/* It stays open too. */
static void ask_nccl(struct rueda_gpus *out)
{
    struct rueda_config config;
    struct rueda_text ignored = {{0}};
    int (*version)(int *) = NULL;
    void *library;

    if (rueda_config_load(&config, &ignored) != RUEDA_OK)
        return;
    library = config.nccl_library[0] != '\0'
                  ? rueda_library_open(config.nccl_library)
                  : rueda_library_open_beside("nvidia/nccl/lib", "libnccl.so.2",
                                              NULL, 0);
    if (library != NULL &&
        rueda_library_function(library, "ncclGetVersion", &version) == RUEDA_OK)
        version(&out->nccl);
}

bool rueda_facts_gpus(struct rueda_finding *finding)
{
    struct rueda_gpus gpus = {.count = entries_in(DRIVER "/gpus")};
    char text[1024];

    if (rueda_file_read(DRIVER "/version", text, sizeof(text)) == RUEDA_OK)
        rueda_nvidia_version(text, gpus.driver, sizeof(gpus.driver));
    ask_library(&gpus);
    if (gpus.visible_count > 0)
        ask_nccl(&gpus);
    rueda_judge_gpus(finding, &gpus);
    return gpus.count > 0 || gpus.visible_count > 0;
}
