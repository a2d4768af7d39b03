"""The C libraries and protobuf tools of the system, as @system//:NAME.

Nothing is downloaded and nothing is compiled: pkg-config says whether a library is there, and a
cc_library carries its link options. What is missing is named together with its Debian package.
"""

# name: pkg-config module, Debian package, link options (None: what pkg-config says).
# gRPC: pkg-config lists dozens of absl libraries, which the shared libgrpc brings by itself.
_LIBRARIES = {
    "cmocka": ("cmocka", "libcmocka-dev", None),
    "crypto": ("libcrypto", "libssl-dev", None),
    "curl": ("libcurl", "libcurl4-openssl-dev", None),
    "grpc": ("grpc", "libgrpc-dev", ["-lgrpc", "-lgpr"]),
    "idn2": ("libidn2", "libidn2-dev", None),
    "inih": ("inih", "libinih-dev", None),
    "jansson": ("jansson", "libjansson-dev", None),
    "lmdb": ("lmdb", "liblmdb-dev", None),
    "protobuf_c": ("libprotobuf-c", "libprotobuf-c-dev", None),
    "seccomp": ("libseccomp", "libseccomp-dev", None),
}

# name: Debian package
_TOOLS = {
    "protoc": "protobuf-compiler",
    "protoc-c": "protobuf-c-compiler",
}

_BUILD_HEADER = 'package(default_visibility = ["//visibility:public"])\n'

_LIBRARY = """
cc_library(
    name = "{name}",
    linkopts = {linkopts},
)
"""

def _pkg_config(ctx, module):
    """Returns the link options of the module, or None when it is not installed."""
    result = ctx.execute(["pkg-config", "--libs", module])
    if result.return_code != 0:
        return None
    return [option for option in result.stdout.strip().split(" ") if option]

def _system_libraries_impl(ctx):
    if not ctx.which("pkg-config"):
        fail("pkg-config is missing; install it with: apt-get install pkg-config")
    missing = []
    build = _BUILD_HEADER
    for name, (module, package, linkopts) in _LIBRARIES.items():
        found = _pkg_config(ctx, module)
        if found == None:
            missing.append((name, package))
            continue
        build += _LIBRARY.format(name = name, linkopts = repr(linkopts or found))
    for name, package in _TOOLS.items():
        path = ctx.which(name)
        if not path:
            missing.append((name, package))
            continue
        ctx.symlink(path, name)
        build += '\nexports_files(["{}"])\n'.format(name)
    if missing:
        fail("missing on this system: {}; install with: apt-get install {}".format(
            ", ".join([name for name, _ in missing]),
            " ".join([package for _, package in missing]),
        ))
    ctx.file("BUILD", build)

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    configure = True,
    local = True,
    environ = ["PATH", "PKG_CONFIG_PATH"],
    doc = "Declares the system libraries and protobuf tools listed above.",
)
