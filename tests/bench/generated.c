// SPDX-License-Identifier: MIT OR Apache-2.0
// C that another compiler generated as a contestant of scripts/bench. peers.py writes entry.h, which says how it is
// called:
//   CALL(in, out)    one inference on two arrays of pointers
//   LOAD(folder)     gets the weights; 0 when it went well
//
// usage: program FOLDER WEIGHTS    FOLDER holds inputs.txt, in_N.bin and wanted.txt (the outputs, with their sizes)
#include "worker.h"

#include "entry.h"

enum { MOST = 256 };
static Tensor inputs[MOST], outputs[MOST];
static void *in[MOST], *out[MOST];

static int worker_run(void) {
    CALL(in, out);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3) worker_fail(argv[0], "wants FOLDER WEIGHTS");
    int64_t began = worker_now();
    if (LOAD(argv[2])) worker_fail(argv[0], "cannot load the weights");
    int n_in = worker_read_table(argv[1], "inputs.txt", inputs, MOST),
        n_out = worker_read_table(argv[1], "wanted.txt", outputs, MOST);
    for (int i = 0; i < n_in; i++) in[i] = worker_load(argv[1], "in", i, inputs[i].bytes);
    for (int i = 0; i < n_out; i++) outputs[i].data = out[i] = worker_alloc(outputs[i].bytes);
    int64_t loaded = worker_now();
    worker_run();
    return worker_serve(argv[1], outputs, n_out, began, loaded, worker_now());
}
