"""Rules for Airlock's own C code. Includes are written from the repository's root.

A test that needs root carries AL_PRIVILEGED_TAGS: it runs outside of Bazel's sandbox, alone, and
`--config=noroot` leaves it out.
"""

load(":copts.bzl", "AL_COPTS", "AL_LINKOPTS")

AL_PRIVILEGED_TAGS = [
    "local",
    "exclusive",
    "requires-root",
]

def al_cc_library(name, copts = [], **kwargs):
    """cc_library with the project's options; always linked statically.

    Args:
      name: the name of the library
      copts: options added to the project's
      **kwargs: as for cc_library
    """
    native.cc_library(
        name = name,
        copts = AL_COPTS + copts,
        linkstatic = True,
        **kwargs
    )

def al_cc_binary(name, copts = [], linkopts = [], **kwargs):
    """cc_binary with the project's options, as a hardened PIE.

    Args:
      name: the name of the program
      copts: options added to the project's
      linkopts: options added to the project's
      **kwargs: as for cc_binary
    """
    native.cc_binary(
        name = name,
        copts = AL_COPTS + copts,
        linkopts = AL_LINKOPTS + linkopts,
        **kwargs
    )

def al_cc_test(name, deps = [], copts = [], linkopts = [], size = "small", **kwargs):
    """cc_test with the project's options and cmocka.

    Args:
      name: the name of the test
      deps: libraries, without cmocka
      copts: options added to the project's
      linkopts: options added to the project's
      size: the time limit is 60 s for small, 300 s for medium
      **kwargs: as for cc_test
    """
    native.cc_test(
        name = name,
        copts = AL_COPTS + copts,
        linkopts = AL_LINKOPTS + linkopts,
        linkstatic = True,
        size = size,
        deps = deps + ["@system//:cmocka"],
        **kwargs
    )

def al_fuzz_test(name, srcs, corpus, deps = [], data = [], size = "medium", **kwargs):
    """A fuzz target: a replay test in every build, a libFuzzer binary with --config=fuzz.

    The source defines LLVMFuzzerTestOneInput. The test NAME replays each seed and some thousand
    fixed mutations of it. The binary NAME_fuzzer is manual; build it with
    `bazel build --config=fuzz //...:NAME_fuzzer`.

    Args:
      name: the name of the test
      srcs: the source that defines LLVMFuzzerTestOneInput
      corpus: a folder of seeds below the calling package
      deps: libraries
      data: files that the target reads besides the seeds
      size: as for al_cc_test
      **kwargs: as for cc_test
    """
    native.cc_test(
        name = name,
        srcs = srcs,
        args = [native.package_name() + "/" + corpus],
        copts = AL_COPTS,
        data = data + native.glob([corpus + "/**"]),
        linkopts = AL_LINKOPTS,
        linkstatic = True,
        size = size,
        deps = deps + ["//tests/fuzz:replay"],
        **kwargs
    )
    native.cc_binary(
        name = name + "_fuzzer",
        testonly = True,
        srcs = srcs,
        copts = AL_COPTS,
        linkopts = AL_LINKOPTS + ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps + ["//tests/fuzz:replay_api"],
    )
