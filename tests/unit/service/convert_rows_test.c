#include "service/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proto/wire/utf8.h"
#include "tests/unit/service/convert_support.h"

struct row {
    const char *name;
    Airlock__V1__RunRequest m; /* strings that are NULL are set to "" */
    enum test_call call;
    enum al_err_code code;
    const char *tenant; /* the call's metadata */
    const char *error;  /* NULL: accepted */
};

static struct al_request_limits small; /* sizes that fit into a row */

static int set_up(void **state)
{
    (void)state;
    struct al_config config;
    al_config_defaults(&config);
    small = config.limits;
    small.code_bytes = 16;
    small.stdin_bytes = 8;
    small.files_bytes = 8;
    small.files = 4;
    small.inputs_bytes = 1000;
    small.metadata_bytes = 16;
    small.env_bytes = 16;
    small.args = 4;
    small.args_bytes = 16;
    return 0;
}

#define BAD      AL_ERR_INVALID_ARGUMENT
#define ID_RANGE " is not an id (1 to 128 of A-Za-z0-9._-)"
#define PATH_RANGE                                                                         \
    " is not allowed (relative, no empty, \".\" or \"..\" component, at most 255 bytes a " \
    "component and 4095 in all"
#define WORKDIR_RANGE                                                                    \
    " is not allowed (/sandbox, /tmp or a folder below one of them; no empty, \".\" or " \
    "\"..\" component; at most 255 bytes)"
#define CPU_RANGE  " is out of range (above 0, at most 300; 0 means the default, 5)"
#define WALL_RANGE " is out of range (above 0, at most 3600; 0 means the default, 10)"
#define AGE_RANGE  " is out of range (0 or more, finite; 0 means the server's limit)"
#define LANGUAGE_RANGE \
    " is not a language (NAME or NAME@VERSION, of A-Za-z0-9._+-, at most 64 bytes)"
#define HOST_RANGE \
    " is not a host, pattern or CIDR block (1 to 253 printable ASCII characters, no space)"
#define CONFLICT " (each path once, and no file that is another's folder)"
#define X64      X50("x") X10("x") "xxxx"

static const struct row rows[] = {
    {.name = "an empty request", .m = {}},

    {.name = "tenant of the request", .m = {.tenant_id = "a.B_9-"}},
    {.name = "tenant of the metadata", .m = {}, .tenant = "a"},
    {.name = "tenant of both, agreeing", .m = {.tenant_id = "a"}, .tenant = "a"},
    {.name = "tenant of both, differing",
     .m = {.tenant_id = "a"},
     .tenant = "b",
     .code = BAD,
     .error = "tenant_id: \"a\" differs from \"b\" of the call's airlock-tenant metadata"},
    {.name = "tenant metadata empty", .m = {.tenant_id = "a"}, .tenant = ""},
    {.name = "tenant of 128 bytes", .m = {.tenant_id = X100("x") X10("x") X10("x") "xxxxxxxx"}},
    {.name = "tenant of 129 bytes",
     .m = {.tenant_id = X100("x") X10("x") X10("x") "xxxxxxxxx"},
     .code = BAD,
     .error = "tenant_id: \"" X64 "...\"" ID_RANGE},
    {.name = "tenant with a slash",
     .m = {.tenant_id = "a/b"},
     .code = BAD,
     .error = "tenant_id: \"a/b\"" ID_RANGE},
    {.name = "tenant metadata with a space",
     .m = {},
     .tenant = "a b",
     .code = BAD,
     .error = "airlock-tenant: \"a b\"" ID_RANGE},
    {.name = "tenant that is not UTF-8",
     .m = {.tenant_id = "\xff\"\\\n\xe3\x81\x82"},
     .code = BAD,
     .error = "tenant_id: \"\\xff\\x22\\x5c\\x0a\xe3\x81\x82\"" ID_RANGE},
    {.name = "user", .m = {.user_id = "u"}},
    {.name = "user with a colon",
     .m = {.user_id = "u:v"},
     .code = BAD,
     .error = "user_id: \"u:v\"" ID_RANGE},

    {.name = "code at its limit", .m = {.code = BYTES("0123456789abcdef")}},
    {.name = "code above its limit",
     .m = {.code = BYTES("0123456789abcdefg")},
     .code = BAD,
     .error = "code: 17 bytes, at most 16"},
    {.name = "stdin at its limit", .m = {.stdin = BYTES("01234567")}},
    {.name = "stdin above its limit",
     .m = {.stdin = BYTES("012345678")},
     .code = BAD,
     .error = "stdin: 9 bytes, at most 8"},

    {.name = "cache_mode at its last", .m = {.cache_mode = 2}},
    {.name = "cache_mode unknown",
     .m = {.cache_mode = 3},
     .code = BAD,
     .error = "cache_mode: 3 is not a known value (0 to 2)"},
    {.name = "cache_mode negative",
     .m = {.cache_mode = (Airlock__V1__CacheMode)-1},
     .code = BAD,
     .error = "cache_mode: -1 is not a known value (0 to 2)"},
    {.name = "gate_mode at its last", .m = {.gate_mode = 2}},
    {.name = "gate_mode unknown",
     .m = {.gate_mode = 3},
     .code = BAD,
     .error = "gate_mode: 3 is not a known value (0 to 2)"},
    {.name = "cache_max_age_seconds", .m = {.cache_max_age_seconds = 60}},
    {.name = "cache_max_age_seconds negative",
     .m = {.cache_max_age_seconds = -1},
     .code = BAD,
     .error = "cache_max_age_seconds: -1" AGE_RANGE},
    {.name = "cache_max_age_seconds nan",
     .m = {.cache_max_age_seconds = -NAN},
     .code = BAD,
     .error = "cache_max_age_seconds: nan" AGE_RANGE},
    {.name = "cache_max_age_seconds infinite",
     .m = {.cache_max_age_seconds = INFINITY},
     .code = BAD,
     .error = "cache_max_age_seconds: inf" AGE_RANGE},

    {.name = "quotas empty", .m = {.quotas = QUOTAS()}},
    {.name = "quotas at their maxima",
     .m = {.quotas = QUOTAS(.cpu_seconds = 300, .wall_seconds = 3600, .memory_mb = 4096,
                            .pids = 1024, .file_size_mb = 4096, .open_files = 1024, .disk_mb = 4096,
                            .output_bytes = 16 << 20, .artifact_bytes = 16 << 20)}},
    {.name = "quotas at their minima",
     .m = {.quotas = QUOTAS(.cpu_seconds = 1e-9, .wall_seconds = 1e-9, .memory_mb = 1, .pids = 1,
                            .file_size_mb = 1, .open_files = 1, .disk_mb = 1, .output_bytes = 1,
                            .artifact_bytes = 1)}},
    {.name = "cpu_seconds negative",
     .m = {.quotas = QUOTAS(.cpu_seconds = -10)},
     .code = BAD,
     .error = "quotas.cpu_seconds: -10" CPU_RANGE},
    {.name = "cpu_seconds above",
     .m = {.quotas = QUOTAS(.cpu_seconds = 300.5)},
     .code = BAD,
     .error = "quotas.cpu_seconds: 300.5" CPU_RANGE},
    {.name = "cpu_seconds infinite",
     .m = {.quotas = QUOTAS(.cpu_seconds = INFINITY)},
     .code = BAD,
     .error = "quotas.cpu_seconds: inf" CPU_RANGE},
    {.name = "wall_seconds nan",
     .m = {.quotas = QUOTAS(.wall_seconds = NAN)},
     .code = BAD,
     .error = "quotas.wall_seconds: nan" WALL_RANGE},
    {.name = "wall_seconds huge",
     .m = {.quotas = QUOTAS(.wall_seconds = 1e300)},
     .code = BAD,
     .error = "quotas.wall_seconds: 1e+300" WALL_RANGE},
    {.name = "wall_seconds minus infinite",
     .m = {.quotas = QUOTAS(.wall_seconds = -INFINITY)},
     .code = BAD,
     .error = "quotas.wall_seconds: -inf" WALL_RANGE},
    {.name = "memory_mb above",
     .m = {.quotas = QUOTAS(.memory_mb = 4097)},
     .code = BAD,
     .error = "quotas.memory_mb: 4097 is out of range (1 to 4096; 0 means the default, 256)"},
    {.name = "memory_mb as -1",
     .m = {.quotas = QUOTAS(.memory_mb = UINT32_MAX)},
     .code = BAD,
     .error = "quotas.memory_mb: 4294967295 is out of range (1 to 4096; 0 means the default, 256)"},
    {.name = "pids above",
     .m = {.quotas = QUOTAS(.pids = 1025)},
     .code = BAD,
     .error = "quotas.pids: 1025 is out of range (1 to 1024; 0 means the default, 64)"},
    {.name = "file_size_mb above",
     .m = {.quotas = QUOTAS(.file_size_mb = 4097)},
     .code = BAD,
     .error = "quotas.file_size_mb: 4097 is out of range (1 to 4096; 0 means the default, 32)"},
    {.name = "open_files above",
     .m = {.quotas = QUOTAS(.open_files = 1025)},
     .code = BAD,
     .error = "quotas.open_files: 1025 is out of range (1 to 1024; 0 means the default, 64)"},
    {.name = "disk_mb above",
     .m = {.quotas = QUOTAS(.disk_mb = 4097)},
     .code = BAD,
     .error = "quotas.disk_mb: 4097 is out of range (1 to 4096; 0 means the default, 64)"},
    {.name = "output_bytes above",
     .m = {.quotas = QUOTAS(.output_bytes = (16 << 20) + 1)},
     .code = BAD,
     .error = "quotas.output_bytes: 16777217 is out of range (1 to 16777216; 0 means the default, "
              "1048576)"},
    {.name = "artifact_bytes above",
     .m = {.quotas = QUOTAS(.artifact_bytes = UINT64_MAX)},
     .code = BAD,
     .error = "quotas.artifact_bytes: 18446744073709551615 is out of range (1 to 16777216; 0 means "
              "the default, 1048576)"},

    {.name = "workdir /sandbox", .m = {.workdir = "/sandbox"}},
    {.name = "workdir below /sandbox", .m = {.workdir = "/sandbox/a/b.c/..d"}},
    {.name = "workdir /tmp", .m = {.workdir = "/tmp"}},
    {.name = "workdir with a slash at its end", .m = {.workdir = "/sandbox/"}},
    {.name = "workdir of 255 bytes", .m = {.workdir = "/tmp/" X100("x") X100("x") X50("y")}},
    {.name = "workdir of 256 bytes",
     .m = {.workdir = "/tmp/" X100("x") X100("x") X50("/")},
     .code = BAD,
     .error = "workdir: \"/tmp/" X50("x") "xxxxxxxxx...\"" WORKDIR_RANGE},
    {.name = "workdir too long",
     .m = {.workdir = "/tmp/" X100("x") "/" X100("x") "/" X50("x")},
     .code = BAD,
     .error = "workdir: \"/tmp/" X50("x") "xxxxxxxxx...\"" WORKDIR_RANGE},
    {.name = "workdir relative",
     .m = {.workdir = "sandbox"},
     .code = BAD,
     .error = "workdir: \"sandbox\"" WORKDIR_RANGE},
    {.name = "workdir root",
     .m = {.workdir = "/"},
     .code = BAD,
     .error = "workdir: \"/\"" WORKDIR_RANGE},
    {.name = "workdir elsewhere",
     .m = {.workdir = "/etc"},
     .code = BAD,
     .error = "workdir: \"/etc\"" WORKDIR_RANGE},
    {.name = "workdir beside",
     .m = {.workdir = "/sandboxes"},
     .code = BAD,
     .error = "workdir: \"/sandboxes\"" WORKDIR_RANGE},
    {.name = "workdir upwards",
     .m = {.workdir = "/tmp/../etc"},
     .code = BAD,
     .error = "workdir: \"/tmp/../etc\"" WORKDIR_RANGE},
    {.name = "workdir with a dot",
     .m = {.workdir = "/tmp/./a"},
     .code = BAD,
     .error = "workdir: \"/tmp/./a\"" WORKDIR_RANGE},
    {.name = "workdir with two slashes",
     .m = {.workdir = "/tmp//a"},
     .code = BAD,
     .error = "workdir: \"/tmp//a\"" WORKDIR_RANGE},
    {.name = "workdir with two slashes at its end",
     .m = {.workdir = "/tmp//"},
     .code = BAD,
     .error = "workdir: \"/tmp//\"" WORKDIR_RANGE},

    {.name = "files", .m = {FILES(F("a"), F("b/c"), F("b/d"), F("...x"))}},
    {.name = "files, too many",
     .m = {FILES(F("a"), F("b"), F("c"), F("d"), F("e"))},
     .code = BAD,
     .error = "files: 5 files, at most 4"},
    {.name = "file at the contents' limit",
     .m = {FILES(F("a", .content = BYTES("01234567")), F("b"))}},
    {.name = "file above the contents' limit",
     .m = {FILES(F("a", .content = BYTES("01234567")), F("b", .content = BYTES("8")))},
     .code = BAD,
     .error = "files[1].content: the contents of all files have more than 8 bytes"},
    {.name = "file mode", .m = {FILES(F("a", .mode = 0777))}},
    {.name = "file mode set-uid",
     .m = {FILES(F("a"), F("b", .mode = 04755))},
     .code = BAD,
     .error = "files[1].mode: 04755 is out of range (permission bits, 0 to 0777; 0 means 0644)"},
    {.name = "file without a path",
     .m = {FILES(F("a"), F(""))},
     .code = BAD,
     .error = "files[1].path: \"\"" PATH_RANGE ", workdir included)"},
    {.name = "file absolute",
     .m = {FILES(F("/etc/passwd"))},
     .code = BAD,
     .error = "files[0].path: \"/etc/passwd\"" PATH_RANGE ", workdir included)"},
    {.name = "file upwards",
     .m = {FILES(F("../x"))},
     .code = BAD,
     .error = "files[0].path: \"../x\"" PATH_RANGE ", workdir included)"},
    {.name = "file upwards inside",
     .m = {FILES(F("a/../x"))},
     .code = BAD,
     .error = "files[0].path: \"a/../x\"" PATH_RANGE ", workdir included)"},
    {.name = "file upwards at the end",
     .m = {FILES(F("a/.."))},
     .code = BAD,
     .error = "files[0].path: \"a/..\"" PATH_RANGE ", workdir included)"},
    {.name = "file with a dot",
     .m = {FILES(F("./x"))},
     .code = BAD,
     .error = "files[0].path: \"./x\"" PATH_RANGE ", workdir included)"},
    {.name = "file with two slashes",
     .m = {FILES(F("a//b"))},
     .code = BAD,
     .error = "files[0].path: \"a//b\"" PATH_RANGE ", workdir included)"},
    {.name = "file that ends with a slash",
     .m = {FILES(F("a/"))},
     .code = BAD,
     .error = "files[0].path: \"a/\"" PATH_RANGE ", workdir included)"},
    {.name = "file with a name of 255 bytes", .m = {FILES(F(X250("x") "xxxxx"))}},
    {.name = "file with a name of 256 bytes",
     .m = {FILES(F(X250("x") "xxxxxx"))},
     .code = BAD,
     .error = "files[0].path: \"" X64 "...\"" PATH_RANGE ", workdir included)"},
    {.name = "file with a path of 4095 bytes",
     .m = {FILES(F(X10(X250("x") "/") X100("abcde/abc/") X100("abcd/")
                       X50("x") "xxxxxxxxxxxxxxxxxxxxxx"
                                "xxxx"))}},
    {.name = "file with a path of 4096 bytes",
     .m = {FILES(F(X10(X250("x") "/") X100("abcde/abc/") X100("abcd/")
                       X50("x") "xxxxxxxxxxxxxxxxxxxxxx"
                                "xxxxx"))},
     .code = BAD,
     .error = "files[0].path: \"" X64 "...\"" PATH_RANGE ", workdir included)"},
    {.name = "file twice",
     .m = {FILES(F("a"), F("b"), F("a"))},
     .code = BAD,
     .error = "files[2].path: \"a\" is also files[0].path" CONFLICT},
    {.name = "file that is a folder",
     .m = {FILES(F("a/b/c"), F("a-b"), F("a"))},
     .code = BAD,
     .error = "files[0].path: \"a/b/c\" is below files[2].path" CONFLICT},
    {.name = "files of one beginning", .m = {FILES(F("a"), F("a-b"), F("a.b/c"), F("ab"))}},
    {.name = "file at the place of the code",
     .m = {FILES(F("a"), F("main.py"))},
     .code = BAD,
     .error = "files[1].path: the code is put at main.py; choose another path"},
    {.name = "file below the place of the code",
     .m = {FILES(F("main.py/x"))},
     .code = BAD,
     .error = "files[0].path: the code is put at main.py; choose another path"},
    {.name = "file of the code's name elsewhere", .m = {FILES(F("a/main.py"), F("main.py2"))}},
    {.name = "file at the place of the inputs",
     .m = {.workdir = "/tmp", .inputs_json = "{}", FILES(F("airlock-inputs.json"))},
     .code = BAD,
     .error = "files[0].path: the inputs are put at /tmp/airlock-inputs.json; choose another path"},
    {.name = "file of the inputs' name elsewhere",
     .m = {.inputs_json = "{}", FILES(F("airlock-inputs.json"))}},
    {.name = "file of the inputs' name without inputs",
     .m = {.workdir = "/tmp", FILES(F("airlock-inputs.json"))}},
    {.name = "workdir at the place of the inputs",
     .m = {.workdir = "/tmp/airlock-inputs.json/a", .inputs_json = "{}"},
     .code = BAD,
     .error = "workdir: the inputs are put at /tmp/airlock-inputs.json; choose another folder"},
    {.name = "file at the place of compiled code",
     .m = {.language = "typescript", FILES(F("out/main.js"))},
     .code = BAD,
     .error = "files[0].path: the compiled code is put at out/main.js; choose another path"},
    {.name = "file above the place of compiled code",
     .m = {.language = "typescript", FILES(F("out"))},
     .code = BAD,
     .error = "files[0].path: the compiled code is put at out/main.js; choose another path"},
    {.name = "file beside compiled code",
     .m = {.language = "typescript", FILES(F("out/x"), F("main.py"))}},

    {.name = "artifacts", .m = {ARTIFACTS("*", "a/**/b?.[ch]")}},
    {.name = "artifact absolute",
     .m = {ARTIFACTS("a", "/etc/*")},
     .code = BAD,
     .error = "artifacts[1]: \"/etc/*\"" PATH_RANGE ")"},
    {.name = "artifact upwards",
     .m = {ARTIFACTS("../*")},
     .code = BAD,
     .error = "artifacts[0]: \"../*\"" PATH_RANGE ")"},
    {.name = "artifact empty",
     .m = {ARTIFACTS("")},
     .code = BAD,
     .error = "artifacts[0]: \"\"" PATH_RANGE ")"},

    {.name = "inputs", .m = {.inputs_json = "{\"a\": 1}"}},
    {.name = "inputs too long",
     .m = {.inputs_json = "{\"a\":\"" X250(X10("x")) "\"}"},
     .code = BAD,
     .error = "inputs_json: 2508 bytes, at most 1000"},
    {.name = "inputs an array",
     .m = {.inputs_json = "[1]"},
     .code = BAD,
     .error = "inputs_json: an array (it must be a JSON object)"},
    {.name = "inputs a number",
     .m = {.inputs_json = "1"},
     .code = BAD,
     .error =
         "inputs_json: line 1, column 1: '[' or '{' expected near '1' (a JSON object, each key "
         "once)"},
    {.name = "inputs cut",
     .m = {.inputs_json = "{\"a\":"},
     .code = BAD,
     .error =
         "inputs_json: line 1, column 5: unexpected token near end of file (a JSON object, each "
         "key once)"},
    {.name = "inputs with more behind",
     .m = {.inputs_json = "{}\n{}"},
     .code = BAD,
     .error =
         "inputs_json: line 2, column 1: end of file expected near '{' (a JSON object, each key "
         "once)"},
    {.name = "inputs with a key twice",
     .m = {.inputs_json = "{\"a\":1,\"a\":2}"},
     .code = BAD,
     .error = "inputs_json: line 1, column 10: duplicate object key near '\"a\"' (a JSON object, "
              "each key once)"},
    {.name = "inputs with nan",
     .m = {.inputs_json = "{\"a\":NaN}"},
     .code = BAD,
     .error = "inputs_json: line 1, column 8: invalid token near 'NaN' (a JSON object, each key "
              "once)"},
    {.name = "inputs with a huge integer",
     .m = {.inputs_json = "{\"a\":9223372036854775808}"},
     .code = BAD,
     .error = "inputs_json: line 1, column 24: too big integer near '9223372036854775808' (a JSON "
              "object, each key once)"},
    {.name = "inputs with an unprintable token",
     .m = {.inputs_json = "{\"a\":\x7f}"},
     .code = BAD,
     .error = "inputs_json: line 1, column 6: invalid token near '\\x7f' (a JSON object, each key "
              "once)"},
    {.name = "inputs with a lone surrogate",
     .m = {.inputs_json = "{\"a\":\"\\ud800\"}"},
     .code = BAD,
     .error = "inputs_json: line 1, column 13: invalid Unicode '\\x5cuD800' near '\"\\x5cud800\"' "
              "(a JSON object, each key once)"},

    {.name = "env", .m = {ENV(E("A", "b=c"), E("a.b-c", ""))}},
    {.name = "env without a name",
     .m = {ENV(E("", "b"))},
     .code = BAD,
     .error = "env[]: the name is empty (at least 1 byte, no '=')"},
    {.name = "env with = in a name",
     .m = {ENV(E("A", "b"), E("B=", "b"))},
     .code = BAD,
     .error = "env[B=]: the name is not allowed (at least 1 byte, no '=')"},
    {.name = "env with an unprintable name",
     .m = {ENV(E("\n=", "b"))},
     .code = BAD,
     .error = "env[\\x0a=]: the name is not allowed (at least 1 byte, no '=')"},
    {.name = "env at its limit", .m = {ENV(E("A", "1234567"), E("B", "1234567"))}},
    {.name = "env above its limit",
     .m = {ENV(E("A", "1234567"), E("B", "12345678"))},
     .code = BAD,
     .error = "env: 17 bytes of names and values, at most 16"},
    {.name = "metadata at its limit", .m = {METADATA(M("a", "1234567"), M("b", "1234567"))}},
    {.name = "metadata above its limit",
     .m = {METADATA(M("a", "1234567"), M("b", "12345678"))},
     .code = BAD,
     .error = "metadata: 17 bytes of names and values, at most 16"},
    {.name = "args at their limit", .m = {ARGS("", "\xe3\x81\x82", "1234567", "1")}},
    {.name = "args, too many",
     .m = {ARGS("1", "2", "3", "4", "5")},
     .code = BAD,
     .error = "args: 5 arguments, at most 4"},
    {.name = "args, too long",
     .m = {ARGS("1234567", "12345678")},
     .code = BAD,
     .error = "args: 17 bytes, terminators included, at most 16"},

    {.name = "egress empty", .m = {.egress = EGRESS()}},
    {.name = "egress none", .m = {.egress = EGRESS(.policy = 1)}},
    {.name = "egress allowlist of nothing", .m = {.egress = EGRESS(.policy = 2)}},
    {.name = "egress allowlist",
     .m = {.egress = EGRESS(.policy = 2, HOSTS("*.example.org", "10.0.0.0/8"))}},
    {.name = "egress unrestricted", .m = {.egress = EGRESS(.policy = 3)}},
    {.name = "egress unknown",
     .m = {.egress = EGRESS(.policy = 4)},
     .code = BAD,
     .error = "egress.policy: 4 is not a known value (0 to 3)"},
    {.name = "egress negative",
     .m = {.egress = EGRESS(.policy = (Airlock__V1__NetworkPolicy)-1)},
     .code = BAD,
     .error = "egress.policy: -1 is not a known value (0 to 3)"},
    {.name = "hosts without a policy",
     .m = {.egress = EGRESS(HOSTS("a"))},
     .code = BAD,
     .error = "egress.hosts: allowed only with NETWORK_POLICY_ALLOWLIST"},
    {.name = "hosts with none",
     .m = {.egress = EGRESS(.policy = 1, HOSTS("a"))},
     .code = BAD,
     .error = "egress.hosts: allowed only with NETWORK_POLICY_ALLOWLIST"},
    {.name = "hosts with unrestricted",
     .m = {.egress = EGRESS(.policy = 3, HOSTS("a"))},
     .code = BAD,
     .error = "egress.hosts: allowed only with NETWORK_POLICY_ALLOWLIST"},
    {.name = "host empty",
     .m = {.egress = EGRESS(.policy = 2, HOSTS("a", ""))},
     .code = BAD,
     .error = "egress.hosts[1]: \"\"" HOST_RANGE},
    {.name = "host with a space",
     .m = {.egress = EGRESS(.policy = 2, HOSTS("a b"))},
     .code = BAD,
     .error = "egress.hosts[0]: \"a b\"" HOST_RANGE},
    {.name = "host that is not ASCII",
     .m = {.egress = EGRESS(.policy = 2, HOSTS("\xc3\xbc.de"))},
     .code = BAD,
     .error = "egress.hosts[0]: \"\xc3\xbc.de\"" HOST_RANGE},
    {.name = "host of 253 bytes", .m = {.egress = EGRESS(.policy = 2, HOSTS(X250("x") "xxx"))}},
    {.name = "host of 254 bytes",
     .m = {.egress = EGRESS(.policy = 2, HOSTS(X250("x") "xxxx"))},
     .code = BAD,
     .error = "egress.hosts[0]: \"" X64 "...\"" HOST_RANGE},

    {.name = "language of a version", .m = {.language = "python@3.11"}},
    {.name = "language ill-formed",
     .m = {.language = "py thon"},
     .code = BAD,
     .error = "language: \"py thon\"" LANGUAGE_RANGE},
    {.name = "language of 65 bytes",
     .m = {.language = X64 "x"},
     .code = BAD,
     .error = "language: \"" X64 "...\"" LANGUAGE_RANGE},
    {.name = "language of 64 bytes",
     .m = {.language = X64},
     .code = AL_ERR_FAILED_PRECONDITION,
     .error = "language: backend full has no \"" X64 "\" (it has: python@3.11.2, typescript@5.0)"},
    {.name = "language without a name",
     .m = {.language = "@3"},
     .code = BAD,
     .error = "language: \"@3\"" LANGUAGE_RANGE},
    {.name = "language without a version",
     .m = {.language = "python@"},
     .code = BAD,
     .error = "language: \"python@\"" LANGUAGE_RANGE},
    {.name = "language of two versions",
     .m = {.language = "python@3@4"},
     .code = BAD,
     .error = "language: \"python@3@4\"" LANGUAGE_RANGE},
    {.name = "language unknown",
     .m = {.language = "cobol"},
     .code = AL_ERR_FAILED_PRECONDITION,
     .error = "language: backend full has no \"cobol\" (it has: python@3.11.2, typescript@5.0)"},
    {.name = "language of a version that is not there",
     .m = {.language = "python@3.12"},
     .code = AL_ERR_FAILED_PRECONDITION,
     .error = "language: backend full has no \"python@3.12\" (it has: python@3.11.2, "
              "typescript@5.0)"},
    {.name = "language of a backend without any",
     .m = {.backend = "mute"},
     .code = AL_ERR_FAILED_PRECONDITION,
     .error = "language: backend mute has no \"python\" (it has: none)"},

    {.name = "backend by name", .m = {.backend = "bare"}},
    {.name = "backend unknown",
     .m = {.backend = "full "},
     .code = AL_ERR_NOT_FOUND,
     .error = "backend: there is no \"full \" (there are: full, bare, down, mute)"},
    {.name = "backend not available",
     .m = {.backend = "down"},
     .code = AL_ERR_FAILED_PRECONDITION,
     .error = "backend: down is not available: the daemon is not running"},
    {.name = "backend unknown in a malformed request",
     .m = {.backend = "x", .workdir = "x"},
     .code = BAD,
     .error = "workdir: \"x\"" WORKDIR_RANGE},

#define LACKS AL_ERR_FAILED_PRECONDITION
    {.name = "stream", .m = {}, .call = STREAM},
    {.name = "terminal", .m = {}, .call = TERMINAL},
    {.name = "capability stream",
     .m = {.backend = "bare"},
     .call = STREAM,
     .code = LACKS,
     .error = "start: backend bare lacks the capability stream"},
    {.name = "capability stdin",
     .m = {.backend = "bare", .stdin = BYTES("a")},
     .code = LACKS,
     .error = "stdin: backend bare lacks the capability stdin"},
    {.name = "capability files",
     .m = {.backend = "bare", FILES(F("a"))},
     .code = LACKS,
     .error = "files: backend bare lacks the capability files"},
    {.name = "capability env",
     .m = {.backend = "bare", ENV(E("A", ""))},
     .code = LACKS,
     .error = "env: backend bare lacks the capability env"},
    {.name = "capability args",
     .m = {.backend = "bare", ARGS("")},
     .code = LACKS,
     .error = "args: backend bare lacks the capability args"},
    {.name = "capability inputs",
     .m = {.backend = "bare", .inputs_json = "{}"},
     .code = LACKS,
     .error = "inputs_json: backend bare lacks the capability inputs"},
    {.name = "capability workdir",
     .m = {.backend = "bare", .workdir = "/tmp"},
     .code = LACKS,
     .error = "workdir: backend bare lacks the capability workdir"},
    {.name = "capability artifacts",
     .m = {.backend = "bare", ARTIFACTS("*")},
     .code = LACKS,
     .error = "artifacts: backend bare lacks the capability artifacts"},
    {.name = "capability egress_allowlist",
     .m = {.backend = "bare", .egress = EGRESS(.policy = 2)},
     .code = LACKS,
     .error = "egress.policy: backend bare lacks the capability egress_allowlist"},
    {.name = "capability egress_unrestricted",
     .m = {.backend = "bare", .egress = EGRESS(.policy = 3)},
     .code = LACKS,
     .error = "egress.policy: backend bare lacks the capability egress_unrestricted"},
};

static void test_convert_run__row(void **state)
{
    const struct row *row = *state;
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
    struct al_request *request = NULL;
    struct al_err err = {0};
    int r = test_convert(&row->m, row->call, row->tenant, &small, arena, &request, &err);
    if (!row->error) {
        if (r < 0) {
            fail_msg("refused: %s", err.text);
        }
        assert_non_null(request);
        return;
    }
    assert_true(r < 0);
    assert_null(request);
    assert_string_equal(err.text, row->error);
    assert_int_equal(err.code, row->code);
    assert_int_equal(al_utf8_valid_prefix((const uint8_t *)err.text, strlen(err.text)),
                     strlen(err.text));
}

#define N_ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static struct CMUnitTest table[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++) {
        table[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = test_convert_run__row,
                                       .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests_name("convert_run", table, set_up, NULL);
}
