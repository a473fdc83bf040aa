// SPDX-License-Identifier: MIT OR Apache-2.0
// A model compiled with --target vulkan as a contestant of gpu.py: linked with the generated C (--name model) and the
// runtime. STEP: the model is a function with a state and a position, as GPT-2's `step`, whose position is POSITION.
//
// usage: program WEIGHTS [WAY]     WEIGHTS: the file of weights, or - where they are part of the program;
//                                  WAY: of the first run (stays)
//   (first, unasked)               ready LOAD_NS FIRST_NS
//   slice WAY SECONDS              times NS NS ...     stays: inputs and outputs on the device; copies: tensors of the
//                                                      host; host: memory of the host that the device copies from and
//                                                      to by itself (not with STEP); copies2, host2: two under way, the
//                                                      time of a pair
//   memory                         memory BYTES        of the device, before anything was copied to the host
#include "worker.h"

#include "burn.h"
#include "model.h"

enum { MOST = 16 };
static int stays(void);
static int copies(void);
static int (*what)(void) = stays;
static uint64_t device_bytes;

static int worker_run(void) { return what(); }

static const void *weights_read(const char *path) {
    if (strcmp(path, "-") == 0) return NULL;
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) worker_fail(path, "cannot read the weights");
    const size_t bytes = (size_t)ftell(f);
    void *weights = worker_alloc(bytes);
    rewind(f);
    if (fread(weights, 1, bytes, f) != bytes) worker_fail(path, "cannot read the weights");
    fclose(f);
    return weights;
}

// Numbers that no kernel may take a shortcut for; a mask hides nothing, a type of token is the first.
static void fill(const burn_tensor_info *info, void *data) {
    uint32_t state = 1;
    for (size_t i = 0; i < info->bytes / burn_element_bytes(info->dtype); i++) {
        state = state * 1664525u + 1013904223u;
        if (info->dtype == BURN_INT64) {
            int64_t v = strstr(info->name, "mask") ? 1 : strstr(info->name, "type") ? 0 : (int64_t)(state >> 22);
            ((int64_t *)data)[i] = v;
        } else if (info->dtype == BURN_FLOAT) {
            ((float *)data)[i] = (float)(state >> 8) * 0x1p-23f - 1;
        } else {
            worker_fail(info->name, "an input of a type that no model of gpu.py has");
        }
    }
}

#ifdef STEP
static model_workspace *work;
static model_state *state;
static int64_t position = POSITION, *ids;
static float *near_logits, *far_logits;
static const void *weights;

static int stays(void) { return model_run(work, weights, &position, ids, state, near_logits); }
static int copies(void) { return model_run(work, weights, &position, ids, state, far_logits); }

static void choose(const char *way) { what = strcmp(way, "copies") == 0 ? copies : stays; }

static const char *last_error(void) { return burn_gpu_error(); }

static void *on_device(size_t bytes) {
    void *p = burn_gpu_memory(bytes);
    if (!p) worker_fail("burn_gpu_memory", burn_gpu_error());
    device_bytes += bytes;
    return p;
}

static void begin(const char *path) {
    const burn_model *m = &model_model;
    weights = weights_read(path);
    work = on_device(sizeof *work);
    state = on_device(sizeof *state);
    ids = on_device(m->inputs[1].bytes);
    near_logits = on_device(m->outputs[0].bytes);
    far_logits = worker_alloc(m->outputs[0].bytes);
    device_bytes += m->weights_bytes;
    fill(&m->inputs[1], ids);
}
#else
static const burn_vk_program *const program = &model_program;
static burn_vk *device;
static burn_vk_session *session;
static burn_vk_workspace *resident;
static burn_tensor in[MOST];

// A run under way, from tensors or from memory of the host.
typedef struct { burn_vk_workspace *workspace; burn_tensor out[MOST]; burn_vk_buffer *inputs, *outputs; } Lane;
static Lane tensors[2], memory[2], *lanes;              // lanes: those in use

static const char *last_error(void) { return burn_vk_last_error(device); }

static void checked(int code, const char *what_failed) {
    if (code) worker_fail(what_failed, last_error());
}

static int ran(burn_vk_workspace *w, const burn_tensor *inputs, const burn_tensor *outputs) {
    const int code = burn_vk_submit(w, inputs, outputs);
    return code ? code : burn_vk_wait(w);
}

static int stays(void) { return ran(resident, NULL, NULL); }

// Places in memory of the host, one behind the other.
static size_t place(const burn_vk_io *ios, int i) {
    size_t at = 0;
    for (int k = 0; k < i; k++) at += (ios[k].tensor.bytes + 63) / 64 * 64;
    return at;
}

static void lane_open(Lane *lane, int host) {
    if (lane->workspace) return;
    checked(burn_vk_workspace_new(session, &lane->workspace), "a workspace");
    for (int i = 0; i < program->output_count && !host; i++)
        lane->out[i] = (burn_tensor){
            .data = worker_alloc(program->outputs[i].tensor.bytes), .bytes = program->outputs[i].tensor.bytes };
    if (!host) return;
    checked(burn_vk_buffer_new_host(device, place(program->inputs, program->input_count), &lane->inputs), "inputs");
    checked(burn_vk_buffer_new_host(device, place(program->outputs, program->output_count), &lane->outputs), "outputs");
    for (int i = 0; i < program->input_count; i++) {
        const size_t at = place(program->inputs, i);
        memcpy((char *)burn_vk_buffer_map(lane->inputs) + at, in[i].data, in[i].bytes);
        checked(burn_vk_bind_input(lane->workspace, i, lane->inputs, at), "an input");
    }
    for (int i = 0; i < program->output_count; i++)
        checked(burn_vk_bind_output(lane->workspace, i, lane->outputs, place(program->outputs, i)), "an output");
}

static int copies(void) { return ran(lanes->workspace, in, lanes->out); }

// Ends each lane's run and begins its next, while the other's is under way.
static int two(void) {
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        code = burn_vk_wait(lanes[i].workspace);
        if (!code) code = burn_vk_submit(lanes[i].workspace, in, lanes[i].out);
    }
    return code;
}

static void choose(const char *way) {
    const int host = strncmp(way, "host", 4) == 0, both = way[strlen(way) - 1] == '2';
    for (int i = 0; i < 2 && lanes; i++)
        if (lanes[i].workspace) checked(burn_vk_wait(lanes[i].workspace), "a run");
    lanes = NULL;
    what = stays;
    if (strcmp(way, "stays") == 0) return;
    lanes = host ? memory : tensors;
    what = both ? two : copies;
    for (int i = 0; i <= both; i++) lane_open(&lanes[i], host);
}

static void begin(const char *path) {
    const burn_vk_program *p = program;
    uint64_t most;
    int code = burn_vk_open(&device, NULL);
    if (!code) code = burn_vk_load(device, p, strcmp(path, "-") ? weights_read(path) : WEIGHTS, &session);
    if (!code) code = burn_vk_workspace_new(session, &resident);
    if (code) worker_fail("loading", last_error());
    if (p->input_count > MOST || p->output_count > MOST) worker_fail("loading", "too many inputs or outputs");
    burn_vk_buffer *own = burn_vk_workspace_buffer(resident);
    for (int i = 0; i < p->input_count && !code; i++) {
        const burn_vk_io *io = &p->inputs[i];
        in[i] = (burn_tensor){ .data = worker_alloc(io->tensor.bytes), .bytes = io->tensor.bytes };
        fill(&io->tensor, in[i].data);
        code = burn_vk_write(own, io->offset, in[i].data, in[i].bytes);
        if (!code) code = burn_vk_bind_input(resident, i, own, io->offset);
    }
    if (code) worker_fail("inputs", last_error());
    burn_vk_memory(device, &device_bytes, &most);
}
#endif

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) worker_fail(argv[0], "wants the file of weights, or -");
    const int64_t began = worker_now();
    begin(argv[1]);
    if (argc == 3) choose(argv[2]);
    const int64_t loaded = worker_now();
    if (worker_run()) worker_fail("the first run", last_error());
    printf("ready %" PRId64 " %" PRId64 "\n", loaded - began, worker_now() - loaded);
    fflush(stdout);
    for (char line[256], kind[16]; fgets(line, sizeof line, stdin);) {
        double seconds;
        if (sscanf(line, "slice %15s %lf", kind, &seconds) == 2) {
            choose(kind);
            worker_slice(seconds);
        } else if (strncmp(line, "memory", 6) == 0) {
            printf("memory %" PRIu64 "\n", device_bytes);
        }
        fflush(stdout);
    }
    return 0;
}
