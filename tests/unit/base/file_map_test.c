#include "backends/base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 32

struct file {
    char path[64];
    int fd;
    size_t len;
};

static struct file make_file(void)
{
    struct file file = {.path = "/tmp/airlock a (deleted)-XXXXXX"}; /* a name to trip over */
    file.fd = mkostemp(file.path, O_CLOEXEC);
    assert_true(file.fd >= 0);
    file.len = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(ftruncate(file.fd, (off_t)file.len), 0);
    return file;
}

static void remove_file(const struct file *file)
{
    unlink(file->path);
    close(file->fd);
}

/* What smaps says of the mapping that begins at `addr`. */
static long resident_kb(const void *addr)
{
    char line[512], start[32];
    long kb = -1;
    snprintf(start, sizeof start, "%lx-", (unsigned long)(uintptr_t)addr);
    FILE *f = fopen("/proc/self/smaps", "re");
    assert_non_null(f);
    for (bool here = false; kb < 0 && fgets(line, sizeof line, f);) {
        here = here || strncmp(line, start, strlen(start)) == 0;
        if (here) {
            if (sscanf(line, "Rss: %ld kB", &kb) != 1) {
                continue;
            }
        }
    }
    (void)fclose(f);
    return kb;
}

static void finds_the_shared_mapping_and_no_other(void **state)
{
    (void)state;
    struct file file = make_file();
    struct al_file_map map = {0};
    assert_int_equal(al_file_map_find(&map, file.fd), -ENOENT);
    void *private = mmap(NULL, file.len, PROT_READ, MAP_PRIVATE, file.fd, 0);
    assert_ptr_not_equal(private, MAP_FAILED);
    assert_int_equal(al_file_map_find(&map, file.fd), -ENOENT);
    assert_null(map.addr);
    void *shared = mmap(NULL, file.len, PROT_READ, MAP_SHARED, file.fd, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_int_equal(al_file_map_find(&map, file.fd), 0);
    assert_ptr_equal(map.addr, shared);
    assert_int_equal(map.len, file.len);
    munmap(shared, file.len);
    assert_int_equal(al_file_map_find(&map, file.fd), -ENOENT);
    assert_null(map.addr);
    munmap(private, file.len);
    remove_file(&file);
}

static void gives_the_pages_back_and_keeps_what_they_hold(void **state)
{
    (void)state;
    struct file file = make_file();
    const size_t page = file.len / PAGES;
    char *shared = mmap(NULL, file.len, PROT_READ, MAP_SHARED, file.fd, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    struct al_file_map map = {0};
    assert_int_equal(al_file_map_find(&map, file.fd), 0);
    for (size_t i = 0; i < PAGES; i++) {
        assert_int_equal(pwrite(file.fd, "x", 1, (off_t)(i * page)), 1);
        assert_int_equal(shared[i * page], 'x');
    }
    for (size_t i = 1; i < AL_FILE_MAP_USES; i++) {
        al_file_map_use(&map);
    }
    assert_int_equal(resident_kb(shared), file.len / 1024);
    al_file_map_use(&map);
    assert_int_equal(resident_kb(shared), 0);
    for (size_t i = 0; i < PAGES; i++) {
        assert_int_equal(shared[i * page], 'x');
    }
    munmap(shared, file.len);
    remove_file(&file);
}

static void without_a_mapping_nothing_happens(void **state)
{
    (void)state;
    struct al_file_map map = {0};
    assert_int_equal(al_file_map_find(&map, -1), -ENOENT);
    for (size_t i = 0; i < 2 * (size_t)AL_FILE_MAP_USES; i++) {
        al_file_map_use(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_shared_mapping_and_no_other),
        cmocka_unit_test(gives_the_pages_back_and_keeps_what_they_hold),
        cmocka_unit_test(without_a_mapping_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
