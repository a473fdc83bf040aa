/* SPDX-License-Identifier: MIT OR Apache-2.0
 * What a WebAssembly module of burncc's says of its model to the JavaScript around it (index.js); a generated file
 * stands before it, and MODEL is its descriptor. */
#ifndef MODEL
#include "../../../runtime/burn.h"
extern const burn_model model;
#define MODEL model
#endif
#define EXPORTED(name) __attribute__((export_name(name), used))
#ifndef __wasm__
#undef EXPORTED
#define EXPORTED(name)
#endif
EXPORTED("model") const burn_model *burncc_model(void);
EXPORTED("run") int burncc_run(void *workspace, const void *weights, const burn_tensor *in, const burn_tensor *out);
EXPORTED("shapes") int burncc_shapes(const burn_tensor *in, const burn_tensor *out);
EXPORTED("check") int burncc_check(const void *weights, size_t bytes);
EXPORTED("text") const char *burncc_text(int code);

const burn_model *burncc_model(void) { return &MODEL; }

int burncc_run(void *workspace, const void *weights, const burn_tensor *in, const burn_tensor *out)
{
    return MODEL.run(NULL, workspace, MODEL.weights_bytes ? weights : NULL, in, out);
}

int burncc_shapes(const burn_tensor *in, const burn_tensor *out) { return MODEL.shapes ? MODEL.shapes(in, out) : 0; }

int burncc_check(const void *weights, size_t bytes)
{
    return MODEL.weights_check ? MODEL.weights_check(weights, bytes) : 0;
}

const char *burncc_text(int code) { return burn_strerror(code); }
