#include "client/help.h"

#define VERSION "0.1.0"

#define GLOBAL_OPTIONS                                                                    \
    "\n"                                                                                  \
    "Options of every command:\n"                                                         \
    "      --server ADDR       HOST:PORT or unix:PATH; default: $AIRLOCK_SERVER, else\n"  \
    "                          127.0.0.1:50051\n"                                         \
    "      --tenant T          act for this tenant\n"                                     \
    "      --timeout S         give the call up after so many seconds\n"                  \
    "      --json              print JSON: protobuf's mapping, the proto's field names\n" \
    "  -h, --help              this text\n"                                               \
    "      --version           the version\n"

#define RUN_OPTIONS                                                                             \
    "\n"                                                                                        \
    "Program:\n"                                                                                \
    "  FILE                    its language is told by .py .js .mjs .cjs .ts .sh .bash\n"       \
    "  -                       read the code from standard input\n"                             \
    "  -e, --code CODE         run CODE\n"                                                      \
    "  -l, --language LANG     python, javascript, typescript, bash, ..., or NAME@VERSION\n"    \
    "  -- ARG...               arguments for the program\n"                                     \
    "      --file HOST:SANDBOX put a file into the sandbox with its permissions; repeatable\n"  \
    "      --env NAME=VALUE    set an environment variable; repeatable\n"                       \
    "      --inputs JSON       an object; the program finds it in the file $AIRLOCK_INPUTS\n"   \
    "      --stdin             forward standard input to the program (stream always does)\n"    \
    "      --workdir DIR       the working directory; default: /sandbox\n"                      \
    "      --backend NAME      see 'airlock backends'; default: the server's choice\n"          \
    "\n"                                                                                        \
    "Limits (0: the server's default):\n"                                                       \
    "      --memory MB         memory in MiB\n"                                                 \
    "      --wall S            elapsed time in seconds\n"                                       \
    "      --cpu S             CPU time in seconds\n"                                           \
    "      --pids N            processes and threads\n"                                         \
    "      --disk MB           space for files in MiB\n"                                        \
    "      --allow HOST        let the program reach HOST, and nothing else; repeatable\n"      \
    "\n"                                                                                        \
    "Results:\n"                                                                                \
    "      --artifact GLOB     return the files that match, '**' for any folders; repeatable\n" \
    "      --out DIR           write them below DIR and replace files there; default: here,\n"  \
    "                          where files stay, and with --json nowhere\n"                     \
    "      --no-cache          neither use nor store a cached result\n"                         \
    "      --stats             print a summary on standard error, as on a terminal\n"

#define ESCAPE                                                                                  \
    "\n"                                                                                        \
    "With --tty, when standard input is a terminal, \"~.\" at the beginning of a line leaves\n" \
    "the job: one with --linger goes on, and how to attach to it is printed (exit code 0);\n"   \
    "any other is killed (137). \"~~\" there is one \"~\" for the program.\n"

#define EXIT_CODES                                                                      \
    "\n"                                                                                \
    "Exit code: the program's; 128 + n after signal n; 124 after a time-out; 137 for\n" \
    "memory, pids and output limits and kills; 125 when Airlock failed, refused the\n"  \
    "request or blocked it; 130 after Ctrl-C, which kills the job.\n"

static const char overview[] = "Usage: airlock COMMAND [OPTION...]\n"
                               "\n"
                               "Runs code that nobody should trust on an Airlock server.\n"
                               "\n"
                               "Commands:\n"
                               "  run        run a program and print what it left\n"
                               "  stream     run a program, with input and output as they come\n"
                               "  attach     go on with a job whose connection broke\n"
                               "  kill       kill a job\n"
                               "  backends   list the server's backends\n"
                               "  job        show the record of a job\n"
                               "  jobs       list the tenant's jobs\n"
                               "  quota      show what is left of the tenant's budget\n"
                               "  cache      show or clear the server's result cache\n"
                               "\n"
                               "'airlock COMMAND --help' tells more.\n" GLOBAL_OPTIONS "\n"
                               "Examples:\n"
                               "  airlock run -l python -e 'print(1)'\n"
                               "  airlock run prog.py -- arg1 arg2\n"
                               "  echo 'echo hello' | airlock run -l bash -\n";

static const char run[] =
    "Usage: airlock run [OPTION...] {FILE | - | -e CODE} [-- ARG...]\n"
    "\n"
    "Runs a program and prints its output when it has ended.\n" RUN_OPTIONS
    "      --follow            print the output as it comes, all of it, with a line about the\n"
    "                          job's progress on a terminal; with --json, one JSON document a\n"
    "                          line for each message. The cache is not used.\n" GLOBAL_OPTIONS
        EXIT_CODES;

static const char stream[] =
    "Usage: airlock stream [OPTION...] {FILE | - | -e CODE} [-- ARG...]\n"
    "\n"
    "Runs a program, forwards standard input to it and prints its output as it comes.\n"
    "With --json, one JSON document a line for each message.\n"
    "\n"
    "  -t, --tty               give the program a terminal: of the size of this one, if it is "
    "one,\n"
    "                          and every key goes to the program, Ctrl-C too\n"
    "      --linger S          let the job outlive a broken connection for so many seconds;\n"
    "                          airlock connects again by itself and goes on where it "
    "was\n" RUN_OPTIONS ESCAPE GLOBAL_OPTIONS EXIT_CODES;

static const char attach[] =
    "Usage: airlock attach [OPTION...] JOB\n"
    "\n"
    "Takes over a job that was started with 'airlock stream --linger', and prints its output\n"
    "as it comes, beginning with what the server still keeps. Whoever read it before is sent\n"
    "away. Ctrl-C leaves the job to linger. Standard input is forwarded if it is a terminal.\n"
    "With --json, one JSON document a line for each event.\n"
    "\n"
    "      --after N           begin after the event with this sequence number\n"
    "      --stdin             forward standard input, and its end, whatever it is\n"
    "  -t, --tty               the job has a terminal: every key goes to the program\n"
    "      --out DIR           write the artifacts below DIR and replace files there\n"
    "      --stats             print a summary on standard error, as on a terminal\n" ESCAPE
        GLOBAL_OPTIONS EXIT_CODES;

static const char kill[] = "Usage: airlock kill [OPTION...] JOB\n"
                           "\n"
                           "Kills a job and waits until nothing of it is left.\n" GLOBAL_OPTIONS;

static const char backends[] =
    "Usage: airlock backends [OPTION...]\n"
    "\n"
    "Lists the backends of the server, with their languages, what isolates a program\n"
    "and what they can do.\n" GLOBAL_OPTIONS;

static const char jobs[] =
    "Usage: airlock jobs [OPTION...]\n"
    "\n"
    "Lists the tenant's jobs, the newest first.\n"
    "\n"
    "      --status STATUS     only those that are pending, running, succeeded, failed,\n"
    "                          timeout, killed, quota_exceeded or egress_blocked\n"
    "      --limit N           how many, at most 1000; default: 50\n"
    "      --page TOKEN        go on where a list before ended\n" GLOBAL_OPTIONS;

static const char job[] = "Usage: airlock job [OPTION...] JOB\n"
                          "\n"
                          "Shows the record of a job.\n" GLOBAL_OPTIONS;

static const char quota[] =
    "Usage: airlock quota [OPTION...]\n"
    "\n"
    "Shows what is left of the tenant's budget at this moment.\n" GLOBAL_OPTIONS;

static const char cache[] =
    "Usage: airlock cache stats [OPTION...]\n"
    "       airlock cache clear [OPTION...]\n"
    "\n"
    "stats shows how the server's result cache fares. clear drops all results in it, of\n"
    "all tenants.\n" GLOBAL_OPTIONS;

const char *al_help_text(enum al_command command)
{
    static const char *const texts[] = {
        [AL_COMMAND_NONE] = overview,     [AL_COMMAND_RUN] = run,
        [AL_COMMAND_STREAM] = stream,     [AL_COMMAND_KILL] = kill,
        [AL_COMMAND_BACKENDS] = backends, [AL_COMMAND_JOBS] = jobs,
        [AL_COMMAND_JOB] = job,           [AL_COMMAND_QUOTA] = quota,
        [AL_COMMAND_CACHE] = cache,       [AL_COMMAND_ATTACH] = attach,
    };
    return texts[command];
}

const char *al_version_text(void)
{
    return "airlock " VERSION "\n";
}
