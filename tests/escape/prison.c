#include "tests/escape/prison.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/buf.h"
#include "backends/base/cleanup.h"
#include "tests/escape/weakened.h"

#define PRODUCT    "backends/launcher/airlock-launcher" /* in the test's runfiles */
#define WEAKENED   "backends/launcher/airlock-launcher-weakened"
#define WAIT_MS    180000
#define PREPARED   4
#define PREPARE_US 100000

/* Jobs take the launcher's uids in order, one job at a time here. */
static const char config_text[] =
    "[cells]\nprepared = %d\nprestarted = %d\n"
    "system_paths = /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc/alternatives "
    "/etc/ld.so.cache %s/shared\n"
    "[runtime bash]\nversion = 1\nargv = /bin/bash {code}\ncode_file = main.sh\n"
    "[runtime python]\nversion = 1\nprestart = python\n"
    "argv = /usr/bin/python3 {code}\ncode_file = main.py\n"
    "[runtime planted]\nversion = 1\ncompile = /bin/bash {code}\n"
    "argv = /usr/bin/env /tmp/attack climb_from_cwd\ncode_file = main.sh\noutput_file = main.out\n"
    "[runtime watched]\nversion = 1\ncompile = /bin/bash {code}\n"
    "argv = /bin/bash {output}\ncode_file = main.sh\noutput_file = main.out\n"
    "[runtime binary]\nversion = 1\ncompile = /bin/bash {code}\n"
    "argv = {output}\ncode_file = main.sh\noutput_file = main.out\n";

static void write_config(const struct world *w, int prepared)
{
    char path[128];
    snprintf(path, sizeof path, "%s/conf", w->dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fprintf(f, config_text, prepared, prepared, w->dir) > 0);
    assert_int_equal(fclose(f), 0);
}

/* What root of the next job's cell is on the host; that of the job after it is two further. */
static unsigned next_root(const struct prison *p)
{
    static const struct inmate inmate = {.language = "bash",
                                         .code = "read -r _ uid _ </proc/self/uid_map; "
                                                 "echo $uid"};
    struct words words;
    prison_run(p, &inmate, &words);
    return (unsigned)strtoul(words.out, NULL, 10) + 2;
}

void prison_open(struct prison *p, const struct world *w, const struct prison_plan *plan)
{
    char config[128], mask[16];
    struct al_err err = {0};
    const char *path = plan->launcher ? plan->launcher : plan->weakened ? WEAKENED : PRODUCT;
    *p = (struct prison){.world = w};
    snprintf(p->data_dir, sizeof p->data_dir, "%s/data-XXXXXX", w->dir);
    assert_non_null(mkdtemp(p->data_dir));
    write_config(w, plan->prepared ? PREPARED : 0);
    snprintf(config, sizeof config, "%s/conf", w->dir);
    snprintf(mask, sizeof mask, "%u", plan->weakened ? plan->off : ~0u);
    setenv(AL_BARRIERS_OFF_ENV, mask, 1);
    if (al_launcher_start(path, config, p->data_dir, &p->launcher, &err) < 0) {
        fail_msg("%s: %s", path, err.text);
    }
    const struct al_launcher_info *info = al_launcher_info(p->launcher);
    if (!info->cells[AL_CELL_NATIVE].available) {
        fail_msg("no native cells: %s", info->cells[AL_CELL_NATIVE].reason);
    }
    if (plan->prepared) {
        usleep(PREPARE_US); /* they are made when nothing else is to be done */
    }
    world_own_setuid(w, next_root(p));
    if (plan->prepared) {
        usleep(PREPARE_US);
    }
}

void prison_close(struct prison *p)
{
    al_launcher_destroy(p->launcher);
    rmdir(p->data_dir);
}

static struct al_bytes map_file(const char *path)
{
    struct stat st;
    al_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    return (struct al_bytes){data, (size_t)st.st_size};
}

static const struct al_language *find_language(const struct prison *p, const char *name)
{
    const struct al_launcher_info *info = al_launcher_info(p->launcher);
    for (size_t i = 0; i < info->n_languages; i++) {
        if (strcmp(info->languages[i].name, name) == 0) {
            return &info->languages[i];
        }
    }
    fail_msg("no language %s", name);
    return NULL;
}

void prison_start(const struct prison *p, const struct inmate *inmate, struct al_launched *ret)
{
    static struct al_file files[2];
    static unsigned serial;
    struct al_err err = {0};
    if (!files[0].path) {
        files[0] = (struct al_file){"attack", map_file("tests/escape/attack/attack"), 0755};
        files[1] = (struct al_file){"preload.so", map_file("tests/escape/preload.so"), 0644};
    }
    struct al_env env[WORLD_ENV + 1];
    size_t n_env = p->world->n_env;
    memcpy(env, p->world->env, n_env * sizeof env[0]);
    if (inmate->preload) {
        env[n_env++] = (struct al_env){"LD_PRELOAD", inmate->preload};
    }
    struct al_job_spec spec = {.language = find_language(p, inmate->language),
                               .code = {(const uint8_t *)inmate->code, strlen(inmate->code)},
                               .workdir = inmate->workdir ? inmate->workdir : "/sandbox",
                               .quotas = world_quotas,
                               .files = files,
                               .n_files = 2,
                               .env = env,
                               .n_env = n_env};
    snprintf(spec.job_id, sizeof spec.job_id, "%08x%08x", (unsigned)getpid(), serial++);
    if (al_launcher_spawn(p->launcher, AL_CELL_NATIVE, &spec, ret, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

/* What there is to read, at the end of `text`; false at the end. */
static bool read_more(int fd, char *text)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    const size_t n = strlen(text);
    assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
    ssize_t got = n == OUTPUT_MAX - 1 ? 0 : read(fd, text + n, OUTPUT_MAX - 1 - n);
    if (got > 0) {
        text[n + (size_t)got] = '\0';
    }
    return got > 0;
}

static void wait_exit(int control, struct al_msg_exit *ret)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    struct pollfd pfd = {.fd = control, .events = POLLIN};
    do {
        assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
        ssize_t got = recv(control, data, sizeof data, 0);
        assert_true(got > 0);
        if (al_msg_decode_exit(data, (size_t)got, ret) == 0) {
            return;
        }
    } while (true);
}

void prison_listen(struct al_launched *job, struct words *ret)
{
    *ret = (struct words){.exit.ran = false};
    while (read_more(job->stdout_fd, ret->out)) {
        /* until nobody can write any more */
    }
    ssize_t got = read(job->stderr_fd, ret->err, sizeof ret->err - 1);
    ret->err[got > 0 ? got : 0] = '\0';
    wait_exit(job->control, &ret->exit);
    al_launched_close(job);
}

void prison_wait_for(const struct al_launched *job, const char *text)
{
    char out[OUTPUT_MAX] = "";
    while (!strstr(out, text)) {
        assert_true(read_more(job->stdout_fd, out));
    }
}

void prison_run(const struct prison *p, const struct inmate *inmate, struct words *ret)
{
    struct al_launched job;
    prison_start(p, inmate, &job);
    prison_listen(&job, ret);
}
