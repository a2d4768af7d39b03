/*
 * Loaded into whatever a job runs, and says so. Should that be the launcher's own binary, which an
 * output file with the first line "#!/proc/self/exe" makes the launcher execute, it tries to write
 * to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void overwrite_launcher(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) {
        return;
    }
    path[n] = '\0';
    const char *name = strrchr(path, '/');
    if (!strstr(path, "launcher")) {
        printf("preloaded %s\n", name ? name + 1 : path);
        fflush(stdout);
    } else {
        int fd = open("/proc/self/exe", O_WRONLY | O_CLOEXEC);
        printf("launcher_exe %s\n", fd < 0 ? strerrorname_np(errno) : "ok");
        fflush(stdout);
        _exit(0);
    }
}
