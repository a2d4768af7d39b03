"""protobuf's well-known types as C, which no Debian package ships: @well_known_types//:timestamp_c."""

_PROTO = "/usr/include/google/protobuf/timestamp.proto"

_BUILD = """
load("@airlock//bazel:protobuf_c.bzl", "protobuf_c_library")

protobuf_c_library(
    name = "timestamp_c",
    srcs = ["google/protobuf/timestamp.proto"],
    visibility = ["//visibility:public"],
)

exports_files(["google/protobuf/timestamp.proto"])
"""

def _well_known_types_impl(ctx):
    if not ctx.path(_PROTO).exists:
        fail(_PROTO + " is missing; install it with: apt-get install libprotobuf-dev")
    ctx.symlink(_PROTO, "google/protobuf/timestamp.proto")
    ctx.file("BUILD", _BUILD)

well_known_types = repository_rule(
    implementation = _well_known_types_impl,
    local = True,
    doc = "Links to the .proto files of libprotobuf-dev and generates C from them.",
)
