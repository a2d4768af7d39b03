/* More than one's share. The bounds of the test's jobs are in tests/escape/bench.c. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

/* From the environment, where the test puts its jobs' bounds. */
static long bound(const char *name)
{
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

/* Half as many again as allowed. */
static int fork_bomb(void)
{
    const long n = bound("ESCAPE_PIDS") * 3 / 2;
    int result = n > 0 ? 0 : NOT_TRIED;
    setpgid(0, 0);
    for (long i = 0; i < n && result == 0; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        result = outcome(pid);
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0) {
        /* all of them */
    }
    return result;
}

static int memory_bomb(void)
{
    const size_t size = (size_t)bound("ESCAPE_MEMORY_MB") * 3 / 2 << 20;
    char *memory =
        mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (size == 0 || memory == MAP_FAILED) {
        return NOT_TRIED;
    }
    memset(memory, 1, size);
    return 0;
}

static int raise_limit(void)
{
    struct rlimit rl;
    getrlimit(RLIMIT_NOFILE, &rl);
    if (rl.rlim_max == RLIM_INFINITY) {
        return NOT_TRIED;
    }
    rl.rlim_max++;
    return outcome(setrlimit(RLIMIT_NOFILE, &rl));
}

static int open_many(void)
{
    const long n = bound("ESCAPE_OPEN_FILES") * 3 / 2;
    int result = n > 0 ? 0 : NOT_TRIED;
    for (long i = 0; i < n && result == 0; i++) {
        result = outcome(dup(1));
    }
    return result;
}

static int large_file(void)
{
    const off_t size = (off_t)bound("ESCAPE_FILE_SIZE_MB") << 20;
    int fd = memfd_create("large", MFD_CLOEXEC);
    signal(SIGXFSZ, SIG_IGN); /* python does so too, and its children inherit it */
    return size == 0 || fd < 0 ? NOT_TRIED : outcome(pwrite(fd, "x", 1, size + 1));
}

static int be_realtime(void)
{
    const struct sched_param first = {.sched_priority = 1};
    return outcome(sched_setscheduler(0, SCHED_RR, &first));
}

static int go_first(void)
{
    return outcome(setpriority(PRIO_PROCESS, 0, -5));
}

const struct attack limit_attacks[] = {
    DOES("fork_bomb", fork_bomb),     DOES("memory_bomb", memory_bomb),
    DOES("raise_limit", raise_limit), DOES("open_many", open_many),
    DOES("large_file", large_file),   DOES("be_realtime", be_realtime),
    DOES("go_first", go_first),       {.name = NULL},
};
