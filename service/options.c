#include "service/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char al_options_help[] =
    "usage: airlockd [OPTION]...\n"
    "Runs code that nobody should trust, for callers who speak gRPC.\n"
    "\n"
    "  --config FILE    read the configuration from FILE; without it the defaults hold\n"
    "  --listen ADDR    HOST:PORT, [IPV6]:PORT or unix:PATH; may be given several times and\n"
    "                   replaces the addresses of the configuration (default 127.0.0.1:50051;\n"
    "                   port 0: any, see the log)\n"
    "  --data-dir DIR   the records of this instance (default /var/lib/airlock)\n"
    "  --check-config   say whether the configuration is good, and exit\n"
    "  --version        print the version, and exit\n"
    "  --help           print this, and exit\n"
    "\n"
    "SIGTERM and SIGINT drain: new jobs are refused, running ones may end; a second one cuts that\n"
    "short. Exit status: 0 after a drain, 1 when something failed, 2 for a wrong option or\n"
    "configuration.\n";

static int add_listen(struct al_options *options, const char *address, struct al_err *err)
{
    if (options->n_listen == AL_LISTEN_MAX) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "--listen: at most %d addresses",
                          AL_LISTEN_MAX);
    }
    options->listen[options->n_listen++] = address;
    return 0;
}

static int take_option(struct al_options *options, int which, struct al_err *err)
{
    switch (which) {
    case 'c':
        options->config = optarg;
        return 0;
    case 'd':
        options->data_dir = optarg;
        return 0;
    case 'l':
        return add_listen(options, optarg, err);
    case 'k':
        options->check_config = true;
        return 0;
    case 'v':
        options->version = true;
        return 0;
    case 'h':
        options->help = true;
        return 0;
    default:
        return -1;
    }
}

int al_options_parse(int argc, char **argv, struct al_options *ret, struct al_err *err)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'},
        {"data-dir", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"check-config", no_argument, NULL, 'k'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct al_options options = {0};
    opterr = 0;
    optind = 0; /* getopt begins anew */
    int which;
    while ((which = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (which == ':' || which == '?') {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: %s", argv[optind - 1],
                              which == ':' ? "needs a value" : "no such option");
        }
        int r = take_option(&options, which, err);
        if (r < 0) {
            return r;
        }
    }
    if (optind < argc) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: not an option", argv[optind]);
    }
    *ret = options;
    return 0;
}

/* Absolute: the launcher works in another folder. */
static int set_data_dir(struct al_config *config, const char *data_dir, struct al_err *err)
{
    char here[PATH_MAX] = "";
    if (data_dir[0] != '/' && !getcwd(here, sizeof here)) {
        return al_err_errno(err, errno, "--data-dir: cannot tell the current folder");
    }
    char path[2 * PATH_MAX];
    int len = snprintf(path, sizeof path, "%s%s%s", here, here[0] ? "/" : "", data_dir);
    if (data_dir[0] == '\0' || len >= (int)sizeof config->data_dir) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "--data-dir: 1 to %zu bytes from the root",
                          sizeof config->data_dir - 1);
    }
    memcpy(config->data_dir, path, (size_t)len + 1);
    return 0;
}

int al_options_configure(const struct al_options *options, struct al_config *ret,
                         struct al_err *err)
{
    al_config_defaults(ret);
    int r = options->config ? al_config_read(ret, options->config, err) : 0;
    if (r == 0 && options->data_dir) {
        r = set_data_dir(ret, options->data_dir, err);
    }
    if (options->n_listen > 0) {
        ret->n_listen = 0;
    }
    for (size_t i = 0; r == 0 && i < options->n_listen; i++) {
        r = al_config_add_listen(ret, options->listen[i], err);
        if (r < 0) {
            al_err_wrap(err, "--listen");
        }
    }
    return r;
}
