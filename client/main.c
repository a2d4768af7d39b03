#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "client/cli.h"
#include "client/exit_code.h"
#include "client/help.h"
#include "client/options.h"
#include "client/output.h"

static int run_command(const struct al_options *options)
{
    static int (*const commands[])(const struct al_options *) = {
        [AL_COMMAND_RUN] = al_cmd_run,       [AL_COMMAND_STREAM] = al_cmd_stream,
        [AL_COMMAND_KILL] = al_cmd_kill,     [AL_COMMAND_BACKENDS] = al_cmd_backends,
        [AL_COMMAND_JOBS] = al_cmd_jobs,     [AL_COMMAND_JOB] = al_cmd_job,
        [AL_COMMAND_QUOTA] = al_cmd_quota,   [AL_COMMAND_CACHE] = al_cmd_cache,
        [AL_COMMAND_ATTACH] = al_cmd_attach,
    };
    return commands[options->command](options);
}

static int print_text(const char *text)
{
    return al_cli_output_done(al_output_write(STDOUT_FILENO, text, strlen(text)));
}

/* Nothing else may become standard input or output because that was closed. gRPC opens an eventfd
 * when it is loaded, so main() would be too late. */
static void fill_standard_fds(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    al_close_fd(&fd);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(void) = fill_standard_fds;

int main(int argc, char **argv)
{
    struct al_options options;
    struct al_err err = {0};
    int code;
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (al_options_parse(&options, argc, argv, getenv("AIRLOCK_SERVER"), &err) < 0) {
        al_output_error("%s", err.text);
        code = AL_EXIT_AIRLOCK;
    } else if (options.help) {
        code = print_text(al_help_text(options.command));
    } else if (options.version) {
        code = print_text(al_version_text());
    } else {
        code = run_command(&options);
    }
    al_options_finish(&options);
    return code;
}
