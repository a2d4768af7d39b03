#include "client/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "client/option_rows.h"

#define LONG_BASE 256 /* getopt's value of row 0; below are letters */
#define ROWS_MAX  32
#define JOB_ID    16
#define LISTS     5

static const char *const command_names[] = {
    [AL_COMMAND_RUN] = "run",       [AL_COMMAND_STREAM] = "stream",
    [AL_COMMAND_KILL] = "kill",     [AL_COMMAND_BACKENDS] = "backends",
    [AL_COMMAND_JOBS] = "jobs",     [AL_COMMAND_JOB] = "job",
    [AL_COMMAND_QUOTA] = "quota",   [AL_COMMAND_CACHE] = "cache",
    [AL_COMMAND_ATTACH] = "attach",
};

#define COMMANDS (sizeof command_names / sizeof *command_names)

const char *al_command_name(enum al_command command)
{
    return command_names[command];
}

const char *al_options_language_of(const char *file)
{
    static const char *const languages[][2] = {
        {".py", "python"},      {".js", "javascript"}, {".mjs", "javascript"},
        {".cjs", "javascript"}, {".ts", "typescript"}, {".sh", "bash"},
        {".bash", "bash"},
    };
    const char *slash = strrchr(file, '/');
    const char *dot = strrchr(slash ? slash + 1 : file, '.');
    for (size_t i = 0; dot && i < sizeof languages / sizeof *languages; i++) {
        if (strcmp(dot, languages[i][0]) == 0) {
            return languages[i][1];
        }
    }
    return NULL;
}

struct parser {
    struct al_options *options;
    struct al_err *err;
    const char *element; /* argv's, in which the option stood */
    char letters[2 * ROWS_MAX + 3];
    struct option longs[ROWS_MAX + 1];
};

/* "-": arguments come in their order, as code 1; ":": a missing value is told from an unknown
 * option. */
static void init_parser(struct parser *parser)
{
    char *letter = parser->letters;
    *letter++ = '-';
    *letter++ = ':';
    for (size_t i = 0; i < al_option_rows_count; i++) {
        const struct al_option_row *row = &al_option_rows[i];
        bool has_value = row->kind != AL_OPTION_FLAG;
        parser->longs[i] = (struct option){row->name, has_value, NULL, LONG_BASE + (int)i};
        if (row->letter) {
            *letter++ = row->letter;
            if (has_value) {
                *letter++ = ':';
            }
        }
    }
}

static const struct al_option_row *find_row(int code)
{
    for (size_t i = 0; i < al_option_rows_count; i++) {
        if (code == LONG_BASE + (int)i || (code > 0 && code == al_option_rows[i].letter)) {
            return &al_option_rows[i];
        }
    }
    return NULL;
}

static bool is_long(const char *element)
{
    return strncmp(element, "--", 2) == 0;
}

static bool is_spelled_out(const char *element, const char *name)
{
    size_t len = strcspn(element + 2, "=");
    return strlen(name) == len && strncmp(element + 2, name, len) == 0;
}

static int refuse_option(const struct parser *parser, int code)
{
    const char *command = al_command_name(parser->options->command);
    bool whole = is_long(parser->element);
    int len = whole ? (int)strcspn(parser->element, "=") : 2;
    char letter[3] = {'-', (char)optopt, '\0'};
    const char *option = whole ? parser->element : letter;
    if (code == ':') {
        return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "%.*s: needs a value", len, option);
    }
    const struct al_option_row *row = whole ? find_row(optopt) : NULL;
    if (row && row->kind == AL_OPTION_FLAG && is_spelled_out(parser->element, row->name)) {
        return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "%.*s: takes no value", len,
                          option);
    }
    return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT,
                      "%.*s: unknown option; 'airlock %s%s--help' lists them", len, option,
                      command ? command : "", command ? " " : "");
}

static int take_option(const struct parser *parser, int code)
{
    const struct al_option_row *row = find_row(code);
    if (!row || (is_long(parser->element) && !is_spelled_out(parser->element, row->name))) {
        return refuse_option(parser, code == ':' ? ':' : '?');
    }
    enum al_command command = parser->options->command;
    const char *name = al_command_name(command);
    if (!(row->commands & 1U << command) && name) {
        return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "--%s: not an option of %s",
                          row->name, name);
    }
    if (!(row->commands & 1U << command)) {
        return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "--%s: stands after the command",
                          row->name);
    }
    return al_option_apply(row, optarg, parser->options, parser->err);
}

static int take_command(const struct parser *parser, const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (command_names[i] && strcmp(command_names[i], name) == 0) {
            parser->options->command = (enum al_command)i;
            return 0;
        }
    }
    return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT,
                      "'%s' is not a command; there are run, stream, attach, kill, backends, "
                      "jobs, job, quota and cache",
                      name);
}

static int take_cache_action(const struct parser *parser, const char *word)
{
    enum al_cache_action *action = &parser->options->cache_action;
    if (*action != AL_CACHE_ACTION_NONE) {
        return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "unexpected argument '%s'", word);
    }
    if (strcmp(word, "stats") != 0 && strcmp(word, "clear") != 0) {
        return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT,
                          "cache: '%s' is neither stats nor clear", word);
    }
    *action = *word == 's' ? AL_CACHE_ACTION_STATS : AL_CACHE_ACTION_CLEAR;
    return 0;
}

static int take_argument(const struct parser *parser, const char *argument)
{
    struct al_options *options = parser->options;
    const char **place = NULL;
    switch (options->command) {
    case AL_COMMAND_NONE:
        return take_command(parser, argument);
    case AL_COMMAND_RUN:
    case AL_COMMAND_STREAM:
        place = options->run.code ? NULL : &options->run.file;
        break;
    case AL_COMMAND_KILL:
    case AL_COMMAND_JOB:
    case AL_COMMAND_ATTACH:
        place = &options->job_id;
        break;
    case AL_COMMAND_CACHE:
        return take_cache_action(parser, argument);
    default:
        break;
    }
    if (place && !*place && *argument) {
        *place = argument;
        return 0;
    }
    return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "unexpected argument '%s'%s", argument,
                      place == &options->run.file ? "; the program's arguments follow '--'" : "");
}

static int take_program_arguments(const struct parser *parser, char *const *items, int n)
{
    struct al_options *options = parser->options;
    bool has_program = options->command == AL_COMMAND_RUN || options->command == AL_COMMAND_STREAM;
    for (int i = 0; i < n; i++) {
        if (!has_program) {
            return al_err_set(parser->err, AL_ERR_INVALID_ARGUMENT, "unexpected argument '%s'",
                              items[i]);
        }
        int rc = al_option_check_utf8("the program's arguments", items[i], parser->err);
        if (rc < 0) {
            return rc;
        }
        options->run.args.items[options->run.args.n++] = items[i];
    }
    return 0;
}

static int parse_elements(struct parser *parser, int argc, char *const argv[])
{
    int code;
    optind = 0;
    opterr = 0;
    for (;;) {
        parser->element = optind == 0 ? argv[1] : argv[optind];
        code = getopt_long(argc, argv, parser->letters, parser->longs, NULL);
        if (code < 0) {
            break;
        }
        int rc = code == 1 ? take_argument(parser, optarg) : take_option(parser, code);
        if (rc < 0) {
            return rc;
        }
    }
    return take_program_arguments(parser, argv + optind, argc - optind);
}

static int check_job_id(const struct al_options *options, struct al_err *err)
{
    const char *id = options->job_id;
    if (!id) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: needs the id of a job",
                          al_command_name(options->command));
    }
    if (strlen(id) != JOB_ID || strspn(id, "0123456789abcdef") != JOB_ID) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "'%s' is not a job id: %d of 0-9a-f", id,
                          JOB_ID);
    }
    return 0;
}

static int complete_run(struct al_run_options *run, const char *command, struct al_err *err)
{
    if (run->code && run->file) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "--code: not together with a file ('%s'); the program's arguments follow "
                          "'--'",
                          run->file);
    }
    if (!run->code && !run->file) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s: needs a FILE, '-' for standard input, or -e CODE", command);
    }
    bool from_stdin = run->file && strcmp(run->file, "-") == 0;
    if (from_stdin && run->forward_stdin) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "--stdin: not together with '-': the code comes from standard input");
    }
    if (run->out && run->globs.n == 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "--out: needs --artifact GLOB, which says what to write");
    }
    if (!run->language && run->file && !from_stdin) {
        run->language = al_options_language_of(run->file);
        if (!run->language) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                              "--language: needed, since '%s' does not end in .py, .js, .mjs, "
                              ".cjs, .ts, .sh or .bash",
                              run->file);
        }
    }
    return 0;
}

/* With --json the artifacts are printed, and a folder is written to only when it is named. */
static void complete_out(struct al_options *options)
{
    struct al_run_options *run = &options->run;
    if (run->globs.n > 0 && !run->out && !options->json) {
        run->out = ".";
        run->keeps_files = true;
    }
}

static int complete(struct al_options *options, struct al_err *err)
{
    if (options->help || options->version) {
        return 0;
    }
    switch (options->command) {
    case AL_COMMAND_NONE:
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "no command; 'airlock --help' lists them");
    case AL_COMMAND_RUN:
    case AL_COMMAND_STREAM:
        complete_out(options);
        return complete_run(&options->run, al_command_name(options->command), err);
    case AL_COMMAND_KILL:
    case AL_COMMAND_JOB:
    case AL_COMMAND_ATTACH:
        return check_job_id(options, err);
    case AL_COMMAND_CACHE:
        if (options->cache_action == AL_CACHE_ACTION_NONE) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "cache: needs stats or clear");
        }
        return 0;
    default:
        return 0;
    }
}

int al_options_parse(struct al_options *ret, int argc, char *const argv[],
                     const char *fallback_server, struct al_err *err)
{
    struct parser parser = {.options = ret, .err = err};
    struct al_strings *const lists[LISTS] = {&ret->run.args, &ret->run.files, &ret->run.env,
                                             &ret->run.hosts, &ret->run.globs};
    *ret = (struct al_options){0};
    for (size_t i = 0; i < LISTS; i++) {
        lists[i]->items = calloc((size_t)argc + 1, sizeof(const char *));
        if (!lists[i]->items) {
            return al_err_errno(err, ENOMEM, "the command line");
        }
    }
    init_parser(&parser);
    int rc = parse_elements(&parser, argc, argv);
    ret->names_server = ret->server != NULL;
    if (!ret->server) {
        bool given = fallback_server && *fallback_server;
        ret->server = given ? fallback_server : AL_CLIENT_DEFAULT_ADDRESS;
    }
    return rc < 0 ? rc : complete(ret, err);
}

void al_options_finish(struct al_options *options)
{
    free(options->run.args.items);
    free(options->run.files.items);
    free(options->run.env.items);
    free(options->run.hosts.items);
    free(options->run.globs.items);
}
