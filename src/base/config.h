/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: one struct, one table, read once.
 *
 * The table gives for each setting its name, default and help; `rueda info
 * --config` and docs/config.md are made from it. Nothing else reads the
 * environment. To add a setting: a field below, a row in config.c.
 *
 * Some settings have a name in Horovod too, and are taken from there if our own
 * is not set (horovod.h).
 */
#ifndef RUEDA_BASE_CONFIG_H
#define RUEDA_BASE_CONFIG_H

#include <rueda/rueda.h>

#include "base/log.h"
#include "base/text.h"

#define RUEDA_CONFIG_NAME_BYTES  64
#define RUEDA_PATH_BYTES         1024
#define RUEDA_CONFIG_STORE_BYTES 256 /* of the store's address */

typedef enum rueda_config_keeper {
    RUEDA_STORE_BY_RANK_0,
    RUEDA_STORE_BY_LAUNCHER,
} rueda_config_keeper;

typedef enum rueda_config_transport {
    RUEDA_TRANSPORT_AUTO, /* shared memory with all its short cuts */
    RUEDA_TRANSPORT_SHM,  /* the same, under the name that people look for */
    RUEDA_TRANSPORT_LOOP, /* messages between threads only */
    RUEDA_TRANSPORT_TCP,  /* messages through TCP only, also in a host */
    RUEDA_TRANSPORT_MESSAGES, /* messages through shared memory only */
} rueda_config_transport;

typedef enum rueda_config_encrypt {
    RUEDA_ENCRYPT_AUTO, /* where an address is not near (os/address.h) */
    RUEDA_ENCRYPT_ALWAYS,
    RUEDA_ENCRYPT_NEVER,
    RUEDA_ENCRYPT_AUTHENTICATE, /* a MAC for each frame, in the clear */
} rueda_config_encrypt;

/* Collectives in stages, inside hosts and between them. */
typedef enum rueda_config_stages {
    RUEDA_STAGES_AUTO, /* where that is faster */
    RUEDA_STAGES_ALWAYS,
    RUEDA_STAGES_NEVER,
} rueda_config_stages;

/* NCCL for tensors on GPUs. */
typedef enum rueda_config_nccl {
    RUEDA_NCCL_AUTO,   /* where each rank has a GPU of its own */
    RUEDA_NCCL_ALWAYS, /* what it cannot do is an error */
    RUEDA_NCCL_NEVER,
} rueda_config_nccl;

/* How often optimizers compare the parameters of all ranks; else a number of
 * steps. */
#define RUEDA_CONFIG_CHECK_OFF   0
#define RUEDA_CONFIG_CHECK_FIRST (-1)

#define RUEDA_FUSION_MOST ((size_t)1 << 32)
#define RUEDA_CACHE_MOST  (1 << 20)

struct rueda_config {
    int rank; /* -1: not set */
    int size;
    int local_rank;
    int local_size;
    int cross_rank;
    int cross_size;
    char store[RUEDA_CONFIG_STORE_BYTES];
    rueda_config_keeper store_keeper;
    char job[RUEDA_CONFIG_NAME_BYTES];
    char key_file[RUEDA_PATH_BYTES];
    int key_fd; /* -1: not set */
    int64_t start_timeout_ms;
    int64_t host_timeout_ms;
    int segment_fd; /* -1: not set */
    rueda_log_level log_level;
    rueda_config_transport transport;
    int tcp_streams;
    char network[RUEDA_CONFIG_STORE_BYTES]; /* "": all */
    rueda_config_encrypt encrypt;
    char algo[RUEDA_PATH_BYTES];
    char tune_file[RUEDA_PATH_BYTES];
    rueda_config_stages staged_allreduce;
    rueda_config_stages staged_allgather;
    char kernels[RUEDA_CONFIG_NAME_BYTES];
    char driver_library[RUEDA_PATH_BYTES]; /* of accelerators */
    rueda_config_nccl nccl;
    char nccl_library[RUEDA_PATH_BYTES]; /* "": to be looked for */
    int64_t nccl_timeout_ms;
    char nvml_library[RUEDA_PATH_BYTES];
    size_t ring_bytes; /* 0: from the caches */
    int64_t spin_us;   /* -1: from the machine */
    int64_t yield_us;
    size_t fusion_bytes; /* up to RUEDA_FUSION_MOST; 0: one by one */
    int cache_capacity;  /* names, up to RUEDA_CACHE_MOST */
    bool groups_alone;
    bool cuda_ipc;
    bool stall_check;
    int64_t stall_warn_ms;     /* 0: never */
    int64_t stall_end_ms;      /* 0: never */
    int64_t stall_give_up_ms;  /* 0: never */
    int64_t stall_repeat_ms;   /* of the same stall */
    bool is_stall_end_ignored; /* it was shorter than the warning */
    int check_every;           /* steps, or RUEDA_CONFIG_CHECK_OFF,
                                  RUEDA_CONFIG_CHECK_FIRST */
    bool tensorflow_waits;     /* ops do, each in a thread of TensorFlow */
    char timeline[RUEDA_PATH_BYTES];
    bool mark_cycles;
    bool dynamic_sets;
    int servers; /* of the last ranks */
    bool repair; /* go on after a death (engine/terms.h) */
    char process_sets[RUEDA_PATH_BYTES];
};

/* A row of the table. parse writes a value of the field's own type to out,
 * which the compiler cannot check; or it returns false, and the field is
 * undefined. */
struct rueda_setting {
    const char *name;
    const char *fallback; /* its default, as one would write it */
    const char *help;
    size_t offset; /* in struct rueda_config */
    /* Without side effects: value may be borrowed from the environment. */
    bool (*parse)(const char *value, void *out);
};

/* The table, for tools: in the order of docs/config.md. Static memory. */
const struct rueda_setting *rueda_settings(size_t *out_count);

/* What the environment says for a setting, or its default. Not parsed: it may
 * be what rueda_config_load() rejects. Valid until the environment changes. */
const char *rueda_setting_value(const struct rueda_setting *setting);

/* The variable that says it: its own name, Horovod's if only that is set. */
const char *rueda_setting_source(const struct rueda_setting *setting);

/*
 * Fill in config from the environment. On failure error names the variable,
 * its value and what it takes; config is then undefined.
 */
rueda_status rueda_config_load(struct rueda_config *config,
                               struct rueda_text *error);

/*
 * A variable that is not one of our settings, such as a launcher's; NULL where
 * it is unset or empty. Valid until the environment changes.
 */
const char *rueda_environment(const char *name);

/* "64m" or "65536": bytes, with k, m, g or t for powers of 1024. */
bool rueda_parse_size(const char *value, void *out_size);

#endif /* RUEDA_BASE_CONFIG_H */
