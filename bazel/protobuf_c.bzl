"""Generates C from .proto files with protoc-c."""

load(":copts.bzl", "AL_GENERATED_COPTS")

def _protobuf_c_generate_impl(ctx):
    # Outputs keep the path of their source, so the roots of sources and outputs differ only in
    # the prefix.
    package = [p for p in [ctx.label.workspace_root, ctx.label.package] if p]
    source_root = "/".join(package) or "."
    args = ctx.actions.args()
    args.add("--proto_path=" + source_root)
    args.add_all(ctx.attr.import_roots, format_each = "--proto_path=%s")
    args.add("--c_out=" + "/".join([ctx.bin_dir.path] + package))
    args.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = ctx.file._protoc_c,
        arguments = [args],
        inputs = ctx.files.srcs + ctx.files.imports,
        outputs = ctx.outputs.outs,
        mnemonic = "ProtobufC",
        progress_message = "Generating C from " + str(ctx.label),
    )

_protobuf_c_generate = rule(
    implementation = _protobuf_c_generate_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".proto"]),
        "imports": attr.label_list(allow_files = [".proto"]),
        "import_roots": attr.string_list(),
        "outs": attr.output_list(),
        "_protoc_c": attr.label(
            default = "@system//:protoc-c",
            allow_single_file = True,
        ),
    },
    output_to_genfiles = False,
)

def protobuf_c_library(
        name,
        srcs,
        imports = [],
        import_roots = [],
        deps = [],
        testonly = False,
        visibility = None):
    """A cc_library made from .proto files.

    The package's folder is the import root: a.proto in it imports b/c.proto as "b/c.proto", and
    dependents may include "b/c.pb-c.h" or the path from the repository's root.

    Args:
      name: the name of the library
      srcs: .proto files of this package
      imports: .proto files of other packages that the sources import
      import_roots: folders from the execution root in which the imports are found
      deps: the protobuf_c_library targets of the imports
      testonly: as everywhere
      visibility: as everywhere
    """
    bases = [src[:-len(".proto")] for src in srcs]
    sources = [base + ".pb-c.c" for base in bases]
    headers = [base + ".pb-c.h" for base in bases]
    _protobuf_c_generate(
        name = name + "_generate",
        srcs = srcs,
        imports = imports,
        import_roots = import_roots,
        outs = sources + headers,
        testonly = testonly,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = AL_GENERATED_COPTS,
        includes = ["."],
        linkstatic = True,
        testonly = testonly,
        visibility = visibility,
        deps = deps + ["@system//:protobuf_c"],
    )
