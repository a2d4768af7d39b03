#include "tests/escape/world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"

#define SUID_COPIES 16 /* as in attack/process.c */

const struct al_quotas world_quotas = {.cpu_ms = 60000,
                                       .wall_ms = 120000,
                                       .memory_mb = 128,
                                       .pids = 32,
                                       .file_size_mb = 4,
                                       .open_files = 64,
                                       .disk_mb = 8};

static const char *path_of(const struct world *w, const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    return path;
}

__attribute__((format(printf, 3, 4))) static void say(struct world *w, const char *name,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = w->texts[w->n_env];
    vsnprintf(text, sizeof w->texts[0], format, args);
    va_end(args);
    w->env[w->n_env++] = (struct al_env){name, text};
}

static void copy_id(const char *to)
{
    char buf[8192];
    al_auto_close int in = open("/usr/bin/id", O_RDONLY | O_CLOEXEC);
    al_auto_close int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, buf, sizeof buf)) > 0;) {
        assert_int_equal(al_io_write_full(out, buf, (size_t)n), 0);
    }
}

static void make_files(struct world *w)
{
    static const char *const dirs[] = {"shared", "shared/open"};
    assert_non_null(mkdtemp(w->dir));
    assert_int_equal(chmod(w->dir, 0755), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(mkdir(path_of(w, dirs[i]), 0755), 0);
        assert_int_equal(chmod(path_of(w, dirs[i]), i ? 0777 : 0755), 0);
    }
    assert_int_equal(mknod(path_of(w, "shared/zero"), S_IFCHR | 0666, makedev(1, 5)), 0);
    assert_int_equal(chmod(path_of(w, "shared/zero"), 0666), 0);
    for (int i = 0; i < SUID_COPIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "shared/suid%d", i);
        copy_id(path_of(w, name));
    }
    w->leak_fd = open(path_of(w, "secret"), O_RDWR | O_CREAT, 0644); /* not CLOEXEC: on purpose */
    assert_true(w->leak_fd >= 0);
}

static void listen_abstract(struct world *w)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const size_t n = strlen(w->dir);
    memcpy(addr.sun_path + 1, w->dir, n);
    w->abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->abstract_fd, (struct sockaddr *)&addr,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)),
                     0);
    assert_int_equal(listen(w->abstract_fd, 8), 0);
}

static int listen_loopback(struct world *w)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof addr;
    w->loopback_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->loopback_fd, (struct sockaddr *)&addr, size), 0);
    assert_int_equal(listen(w->loopback_fd, 8), 0);
    assert_int_equal(getsockname(w->loopback_fd, (struct sockaddr *)&addr, &size), 0);
    return ntohs(addr.sin_port);
}

static const char *queue_name(void)
{
    static char name[32];
    snprintf(name, sizeof name, "/airlock-escape-%d", getpid());
    return name;
}

/* With `umask` out of the way: what stops an attack is to be the namespace, not the mode. */
static void make_ipc(struct world *w)
{
    const mode_t mask = umask(0);
    const key_t key = 0x5e000000 | (getpid() & 0xffffff);
    w->queue = mq_open(queue_name(), O_RDWR | O_CREAT | O_CLOEXEC, 0666, NULL);
    w->shm = shmget(key, 4096, IPC_CREAT | 0666);
    umask(mask);
    assert_true(w->queue >= 0);
    assert_true(w->shm >= 0);
    say(w, "ESCAPE_SHM_KEY", "%d", key);
    say(w, "ESCAPE_QUEUE", "%s", queue_name());
}

void world_open(struct world *w)
{
    char host[64] = "";
    *w = (struct world){.dir = "/var/tmp/airlock-escape-XXXXXX"}; /* /tmp is the cell's own */
    make_files(w);
    say(w, "ESCAPE_DIR", "%s", w->dir);
    listen_abstract(w);
    say(w, "ESCAPE_PORT", "%d", listen_loopback(w));
    make_ipc(w);
    gethostname(host, sizeof host - 1);
    say(w, "ESCAPE_HOSTNAME", "%s", host);
    say(w, "ESCAPE_DISK_MB", "%u", world_quotas.disk_mb);
    say(w, "ESCAPE_PIDS", "%u", world_quotas.pids);
    say(w, "ESCAPE_MEMORY_MB", "%u", world_quotas.memory_mb);
    say(w, "ESCAPE_OPEN_FILES", "%u", world_quotas.open_files);
    say(w, "ESCAPE_FILE_SIZE_MB", "%u", world_quotas.file_size_mb);
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    syscall(SYS_add_key, "user", w->dir, "secret", 6, KEY_SPEC_SESSION_KEYRING);
    setenv("AIRLOCK_ESCAPE_SECRET", "secret", 1); /* the launcher inherits it, no job may */
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void world_close(struct world *w)
{
    close(w->abstract_fd);
    close(w->loopback_fd);
    close(w->leak_fd);
    mq_close(w->queue);
    mq_unlink(queue_name());
    shmctl(w->shm, IPC_RMID, NULL);
    nftw(w->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void world_own_setuid(const struct world *w, unsigned uid)
{
    for (unsigned i = 0; i < SUID_COPIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "shared/suid%u", i);
        assert_int_equal(chown(path_of(w, name), uid + 2 * i, uid + 2 * i), 0);
        assert_int_equal(chmod(path_of(w, name), 04755), 0); /* after chown, which clears it */
    }
}
