#include "tests/bench/program.h"

static const char *const python[] = {"/usr/bin/python3", "{code}", NULL};
static const char *const node[] = {"/usr/bin/node", "{code}", NULL};
static const char *const node_output[] = {"/usr/bin/node", "{output}", NULL};
static const char *const bash[] = {"/bin/bash", "{code}", NULL};
static const char *const esbuild[] = {"/usr/bin/esbuild",    "{code}",
                                      "--outfile={output}",  "--bundle",
                                      "--platform=node",     "--format=cjs",
                                      "--packages=external", "--log-level=warning",
                                      "--color=false",       NULL};

const struct al_bench_program al_bench_programs[AL_BENCH_PROGRAMS] = {
    {.language = "python", .code = "print(1)\n", .code_file = "main.py", .argv = python},
    {.language = "javascript", .code = "console.log(1);\n", .code_file = "main.js", .argv = node},
    {.language = "typescript",
     .code = "const one: number = 1;\nconsole.log(one);\n",
     .code_file = "main.ts",
     .compile = esbuild,
     .argv = node_output},
    {.language = "bash", .code = "echo 1\n", .code_file = "main.sh", .argv = bash},
};
