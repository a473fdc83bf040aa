# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models as libraries of C: burncc_model(name, model, options) makes NAME.c and NAME.h and compiles them. Programs
include "PACKAGE/NAME.h", as Bazel has it.

burncc is looked for on PATH (build with --action_env=PATH where it is not in /usr/bin). Bazel knows no depfiles: what
else burncc reads of the model, such as external data and headers of a description, goes in `data`.
"""

def burncc_model(name, model, options = [], data = [], copts = ["-O3"], **kwargs):
    code = name + "_code"
    native.genrule(
        name = code,
        srcs = [model] + data,
        outs = [name + ".c", name + ".h"],
        cmd = "burncc -q $(location %s) -o $(location %s.c) %s" % (model, name, " ".join(options)),
        message = "Compiling the model",
    )
    native.cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        copts = copts,
        linkopts = ["-lm"],
        **kwargs
    )
