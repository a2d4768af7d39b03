/*
 * A program for the limit suite: does what its arguments say, step by step, measures what it has
 * really done, and prints that: "memory_kib cpu_us wall_us". Memory is the most that its processes
 * and its files had at a time, as far as a program can see it: not what the kernel keeps for them.
 *
 *   anon=MIB shared=MIB file=MIB     takes memory, touches it and keeps it
 *   cpu=MS sleep=MS                  spends time
 *   children=N,STEP threads=N,STEP   N of them at once, which all take that step and live until the
 *                                    last has taken it
 *   spawns=N                         N programs, one after the other
 *   drop                             gives anon and shared memory back
 *   report                           prints "cpu_us wall_us" every few milliseconds, until killed
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB         (1u << 20)
#define BLOCKS_MAX  32
#define AT_ONCE_MAX 64
#define REPORT_US   2000
#define FILE_PART   (16 * MIB) /* below the limit on a file's size */

/* What children share with their parent. */
struct meeting {
    pthread_barrier_t barrier;
    _Atomic int64_t memory_kib; /* of all children together */
};

static struct {
    void *at;
    size_t size;
} blocks[BLOCKS_MAX];
static size_t n_blocks;
static unsigned n_files;
static int64_t memory_kib; /* the most so far */
static int64_t started_cpu_us, started_wall_us;

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t clock_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t timeval_us(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static int64_t cpu_us(void)
{
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    return clock_us(CLOCK_PROCESS_CPUTIME_ID) + timeval_us(children.ru_utime) +
           timeval_us(children.ru_stime);
}

/* --- memory --- */

/* Of pages that several processes share each counts its part. */
static int64_t mapped_kib(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    char line[128];
    int64_t sum = 0, kib;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "Pss_Anon: %" SCNd64, &kib) == 1 ||
            sscanf(line, "Pss_Shmem: %" SCNd64, &kib) == 1) {
            sum += kib;
        }
    }
    if (!f || sum == 0) {
        die("smaps_rollup");
    }
    fclose(f);
    return sum;
}

static int64_t files_kib(void)
{
    struct statvfs fs;
    if (statvfs(".", &fs) < 0) {
        die("statvfs");
    }
    return (int64_t)(fs.f_blocks - fs.f_bfree) * (int64_t)fs.f_bsize / 1024;
}

static void note_memory(int64_t of_children_kib)
{
    int64_t now_kib = mapped_kib() + files_kib() + of_children_kib;
    memory_kib = now_kib > memory_kib ? now_kib : memory_kib;
}

static void take_block(unsigned mib, int flags)
{
    size_t size = (size_t)mib * MIB;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || n_blocks == BLOCKS_MAX) {
        die("mmap");
    }
    memset(at, 1, size);
    blocks[n_blocks].at = at;
    blocks[n_blocks++].size = size;
}

static void drop_blocks(void)
{
    while (n_blocks > 0) {
        n_blocks--;
        munmap(blocks[n_blocks].at, blocks[n_blocks].size);
    }
}

static void write_file(unsigned mib)
{
    static char part[MIB];
    char name[64];
    for (size_t left = (size_t)mib * MIB; left > 0;) {
        snprintf(name, sizeof name, "file.%d.%u", (int)getpid(), n_files++);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        for (size_t n = left < FILE_PART ? left : FILE_PART; fd >= 0 && n > 0; n -= sizeof part) {
            if (write(fd, part, sizeof part) != (ssize_t)sizeof part) {
                die("write");
            }
            left -= sizeof part;
        }
        if (fd < 0 || close(fd) < 0) {
            die(name);
        }
    }
}

/* --- time --- */

static void burn(unsigned ms)
{
    int64_t until_us = clock_us(CLOCK_THREAD_CPUTIME_ID) + (int64_t)ms * 1000;
    while (clock_us(CLOCK_THREAD_CPUTIME_ID) < until_us) {
        for (volatile int i = 0; i < 1000; i++) {
        }
    }
}

static void spawn_many(unsigned n)
{
    static char name[] = "true";
    char *const argv[] = {name, NULL};
    for (unsigned i = 0; i < n; i++) {
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, NULL) != 0 ||
            waitpid(pid, NULL, 0) != pid) {
            die("true");
        }
    }
}

static _Noreturn void report_until_killed(void)
{
    for (int64_t next_us = 0;;) {
        int64_t now_us = clock_us(CLOCK_MONOTONIC) - started_wall_us;
        if (now_us >= next_us) {
            dprintf(1, "%" PRId64 " %" PRId64 "\n", cpu_us() - started_cpu_us, now_us);
            next_us = now_us + REPORT_US;
        }
    }
}

/* --- steps --- */

static void take_step(const char *step);

static void run_child(struct meeting *meeting, const char *step)
{
    n_files = 0;
    take_step(step);
    pthread_barrier_wait(&meeting->barrier);
    meeting->memory_kib += mapped_kib();
    pthread_barrier_wait(&meeting->barrier);
    pthread_barrier_wait(&meeting->barrier); /* the parent has added itself */
    _exit(0);
}

static void run_children(unsigned n, const char *step)
{
    struct meeting *meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (meeting == MAP_FAILED || pthread_barrier_init(&meeting->barrier, &attr, n + 1) != 0) {
        die("meeting");
    }
    for (unsigned i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            run_child(meeting, step);
        }
        if (pid < 0) {
            die("fork");
        }
    }
    pthread_barrier_wait(&meeting->barrier);
    pthread_barrier_wait(&meeting->barrier);
    note_memory(meeting->memory_kib);
    pthread_barrier_wait(&meeting->barrier);
    for (unsigned i = 0; i < n; i++) {
        int status;
        if (wait(&status) < 0 || status != 0) {
            die("child");
        }
    }
}

struct thread {
    pthread_t id;
    pthread_barrier_t *barrier;
    const char *step;
};

static void *run_thread(void *arg)
{
    struct thread *t = arg;
    take_step(t->step);
    pthread_barrier_wait(t->barrier);
    return NULL;
}

static void run_threads(unsigned n, const char *step)
{
    static struct thread threads[AT_ONCE_MAX];
    pthread_barrier_t barrier;
    if (n > AT_ONCE_MAX || pthread_barrier_init(&barrier, NULL, n) != 0) {
        die("barrier");
    }
    for (unsigned i = 0; i < n; i++) {
        threads[i] = (struct thread){.barrier = &barrier, .step = step};
        if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0) {
            die("thread");
        }
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(threads[i].id, NULL);
    }
}

static void take_memory(const char *verb, unsigned mib)
{
    if (strcmp(verb, "file") == 0) {
        write_file(mib);
    } else {
        take_block(mib, strcmp(verb, "anon") == 0 ? MAP_PRIVATE : MAP_SHARED);
    }
}

static void take_step(const char *step)
{
    char verb[16] = "";
    unsigned value = 0;
    int end = 0;
    if (sscanf(step, "%15[a-z]=%u%n", verb, &value, &end) < 1) {
        die(step);
    }
    const char *rest = step[end] == ',' ? step + end + 1 : "";
    if (strcmp(verb, "anon") == 0 || strcmp(verb, "shared") == 0 || strcmp(verb, "file") == 0) {
        take_memory(verb, value);
    } else if (strcmp(verb, "cpu") == 0) {
        burn(value);
    } else if (strcmp(verb, "sleep") == 0) {
        usleep(value * 1000);
    } else if (strcmp(verb, "children") == 0) {
        run_children(value, rest);
    } else if (strcmp(verb, "threads") == 0) {
        run_threads(value, rest);
    } else if (strcmp(verb, "spawns") == 0) {
        spawn_many(value);
    } else if (strcmp(verb, "drop") == 0) {
        drop_blocks();
    } else if (strcmp(verb, "report") == 0) {
        report_until_killed();
    } else {
        die(step);
    }
}

int main(int argc, char **argv)
{
    started_wall_us = clock_us(CLOCK_MONOTONIC);
    started_cpu_us = cpu_us();
    for (int i = 1; i < argc; i++) {
        take_step(argv[i]);
        note_memory(0);
    }
    drop_blocks(); /* or the kernel does it after the last measurement */
    printf("%" PRId64 " %" PRId64 " %" PRId64 "\n", memory_kib, cpu_us() - started_cpu_us,
           clock_us(CLOCK_MONOTONIC) - started_wall_us);
    return 0;
}
