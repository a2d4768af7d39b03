#include "client/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/buf.h"
#include "backends/base/cleanup.h"

#define ARENA_BYTES (AL_REQUEST_READ_MAX + ((size_t)16 << 20))
#define READ_BYTES  ((size_t)64 << 10)

/* Room for what the arena cannot give is a bug of the bounds or a machine out of memory. */
struct builder {
    struct al_arena *arena;
    struct al_err *err;
    size_t left; /* of AL_REQUEST_READ_MAX */
};

static void *take(struct builder *b, size_t count, size_t size)
{
    void *memory = al_arena_alloc_array(b->arena, count, size);
    if (!memory) {
        al_err_set(b->err, AL_ERR_INTERNAL, "the request does not fit into memory");
    }
    return memory;
}

static int read_all(struct builder *b, int fd, const char *name, struct al_buf *buf)
{
    for (;;) {
        uint8_t *room = al_buf_reserve(buf, READ_BYTES);
        if (!room) {
            return al_err_errno(b->err, ENOMEM, "%s", name);
        }
        ssize_t got = TEMP_FAILURE_RETRY(read(fd, room, READ_BYTES));
        if (got < 0) {
            return al_err_errno(b->err, errno, "%s", name);
        }
        if (got == 0) {
            return 0;
        }
        buf->len += (size_t)got;
        if (buf->len > b->left) {
            return al_err_set(b->err, AL_ERR_INVALID_ARGUMENT,
                              "%s: too large; a request may have %zu MiB in all", name,
                              AL_REQUEST_READ_MAX >> 20);
        }
    }
}

static int read_fd(struct builder *b, int fd, const char *name, ProtobufCBinaryData *ret)
{
    struct al_buf buf;
    al_buf_init(&buf, b->left + 2 * READ_BYTES);
    int rc = read_all(b, fd, name, &buf);
    if (rc == 0) {
        ret->len = buf.len;
        ret->data = take(b, buf.len, 1);
        rc = ret->data ? 0 : -ENOMEM;
    }
    if (rc == 0 && buf.len > 0) {
        memcpy(ret->data, buf.data, buf.len);
        b->left -= buf.len;
    }
    al_buf_finish(&buf);
    return rc;
}

static int read_path(struct builder *b, const char *path, ProtobufCBinaryData *ret,
                     uint32_t *ret_mode)
{
    struct stat st;
    al_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return al_err_errno(b->err, errno, "%s", path);
    }
    if (ret_mode) {
        *ret_mode = st.st_mode & 0777;
    }
    return read_fd(b, fd, path, ret);
}

static int add_code(struct builder *b, const struct al_run_options *run,
                    Airlock__V1__RunRequest *request)
{
    if (run->code) {
        request->code.data = (uint8_t *)run->code;
        request->code.len = strlen(run->code);
        return 0;
    }
    if (strcmp(run->file, "-") == 0) {
        return read_fd(b, STDIN_FILENO, "standard input", &request->code);
    }
    return read_path(b, run->file, &request->code, NULL);
}

static int add_files(struct builder *b, const struct al_strings *files,
                     Airlock__V1__RunRequest *request)
{
    request->files = take(b, files->n, sizeof(Airlock__V1__SandboxFile *));
    if (!request->files) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < files->n; i++) {
        Airlock__V1__SandboxFile *file = take(b, 1, sizeof *file);
        char *host = al_arena_strdup(b->arena, files->items[i]);
        if (!file || !host) {
            return al_err_errno(b->err, ENOMEM, "--file");
        }
        airlock__v1__sandbox_file__init(file);
        char *colon = strrchr(host, ':');
        *colon = '\0';
        file->path = colon + 1;
        int rc = read_path(b, host, &file->content, &file->mode);
        if (rc < 0) {
            al_err_wrap(b->err, "--file");
            return rc;
        }
        request->files[request->n_files++] = file;
    }
    return 0;
}

static int add_env(struct builder *b, const struct al_strings *env,
                   Airlock__V1__RunRequest *request)
{
    request->env = take(b, env->n, sizeof(Airlock__V1__RunRequest__EnvEntry *));
    if (!request->env) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < env->n; i++) {
        Airlock__V1__RunRequest__EnvEntry *entry = take(b, 1, sizeof *entry);
        char *key = al_arena_strdup(b->arena, env->items[i]);
        if (!entry || !key) {
            return al_err_errno(b->err, ENOMEM, "--env");
        }
        airlock__v1__run_request__env_entry__init(entry);
        char *equals = strchr(key, '=');
        *equals = '\0';
        entry->key = key;
        entry->value = equals + 1;
        request->env[request->n_env++] = entry;
    }
    return 0;
}

static int add_limits(struct builder *b, const struct al_run_options *run,
                      Airlock__V1__RunRequest *request)
{
    Airlock__V1__Quotas *quotas = take(b, 1, sizeof *quotas);
    if (!quotas) {
        return -ENOMEM;
    }
    airlock__v1__quotas__init(quotas);
    quotas->cpu_seconds = run->cpu_seconds;
    quotas->wall_seconds = run->wall_seconds;
    quotas->memory_mb = run->memory_mb;
    quotas->pids = run->pids;
    quotas->disk_mb = run->disk_mb;
    request->quotas = quotas;
    return 0;
}

static int add_egress(struct builder *b, const struct al_strings *hosts,
                      Airlock__V1__RunRequest *request)
{
    if (hosts->n == 0) {
        return 0;
    }
    Airlock__V1__EgressAllowlist *egress = take(b, 1, sizeof *egress);
    if (!egress) {
        return -ENOMEM;
    }
    airlock__v1__egress_allowlist__init(egress);
    egress->policy = AIRLOCK__V1__NETWORK_POLICY__NETWORK_POLICY_ALLOWLIST;
    egress->hosts = (char **)hosts->items;
    egress->n_hosts = hosts->n;
    request->egress = egress;
    return 0;
}

static char *string_or_empty(const char *string)
{
    return string ? (char *)string : (char *)protobuf_c_empty_string;
}

static void add_strings(const struct al_options *options, Airlock__V1__RunRequest *request)
{
    const struct al_run_options *run = &options->run;
    request->language = string_or_empty(run->language);
    request->inputs_json = string_or_empty(run->inputs);
    request->workdir = string_or_empty(run->workdir);
    request->backend = string_or_empty(run->backend);
    request->tenant_id = string_or_empty(options->tenant);
    request->args = (char **)run->args.items;
    request->n_args = run->args.n;
    request->artifacts = (char **)run->globs.items;
    request->n_artifacts = run->globs.n;
    if (run->no_cache) {
        request->cache_mode = AIRLOCK__V1__CACHE_MODE__CACHE_MODE_OFF;
    }
}

static int build(struct builder *b, const struct al_options *options, bool read_stdin,
                 Airlock__V1__RunRequest **ret)
{
    const struct al_run_options *run = &options->run;
    Airlock__V1__RunRequest *request = take(b, 1, sizeof *request);
    if (!request) {
        return -ENOMEM;
    }
    airlock__v1__run_request__init(request);
    add_strings(options, request);
    int rc = add_limits(b, run, request);
    rc = rc < 0 ? rc : add_egress(b, &run->hosts, request);
    rc = rc < 0 ? rc : add_env(b, &run->env, request);
    rc = rc < 0 ? rc : add_code(b, run, request);
    rc = rc < 0 ? rc : add_files(b, &run->files, request);
    if (rc == 0 && read_stdin) {
        rc = read_fd(b, STDIN_FILENO, "standard input", &request->stdin);
    }
    *ret = request;
    return rc;
}

int al_request_create(const struct al_options *options, bool read_stdin,
                      struct al_arena **ret_arena, Airlock__V1__RunRequest **ret,
                      struct al_err *err)
{
    struct builder b = {.err = err, .left = AL_REQUEST_READ_MAX};
    b.arena = al_arena_create(ARENA_BYTES);
    if (!b.arena) {
        return al_err_errno(err, ENOMEM, "the request");
    }
    int rc = build(&b, options, read_stdin, ret);
    if (rc < 0) {
        al_arena_destroy(b.arena);
        return rc;
    }
    *ret_arena = b.arena;
    return 0;
}
