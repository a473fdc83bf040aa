// SPDX-License-Identifier: MIT OR Apache-2.0
// A loop whose steps are small as one dispatch: a workgroup goes through all of them, and through the kernels of each,
// where each kernel, copy and number would be a command of its own, behind a barrier.
//
// In: a Loop that only its count ends, whose body's kernels are loop nests of known sizes. Out: a shader with a
// function for each of them, what it carries in the same memory as elsewhere:
//
//   for (int trip = 0; trip < trips; trip++) {
//       for (uint point = local; point < 512u; point += 256u) part0(point);
//       sync();
//       ...
//       for (uint i = local; i < 128u; i += 256u) a_f32[at7 + (trip * 128 + int(i))] = a_f32[at2 + int(i)];
//       sync();
//   }
//
// A recurrent net of 256 units at batch 1 is such a loop; with larger steps a GPU's other cores are worth the commands.
#include "glsl.h"


enum { THREADS = 256 };
static const double patience = 500e3;                   // microseconds: systems end kernels that take seconds

// ---------------------------------------------------------------- which loops
static bool is_true(const Value *v) { return v->data && tensor_get_i(v->data, 0); }

static bool only_counts(const Node *n) {
    const Graph *b = n->bodies[0];
    int count;
    const Value *last = b->outputs.at[0];
    const bool goes_on = (!n->in[1] || is_true(n->in[1])) && (is_true(last) || last == b->inputs.at[1]);
    return goes_on && (node_ints(n, "trips", &count) || (n->in[0] && n->in[0]->data));
}

static double most_trips(const Node *n) {
    int count;
    const int64_t *trips = node_ints(n, "trips", &count);
    return (double)(trips ? dim_upper(n->graph, trips[0]) : tensor_get_i(n->in[0]->data, 0));
}

static Buffer *place_of(const Plan *p, const Value *v, int64_t *at) {
    Buffer *b = plan_value(p, v).buffer;
    *at = 0;
    return b ? buffer_owner(b, at) : NULL;
}

static bool same_place(const Plan *p, const Value *x, const Value *y) {
    int64_t at[2];
    const Buffer *bx = place_of(p, x, &at[0]), *by = place_of(p, y, &at[1]);
    return x == y || (bx && bx == by && at[0] == at[1]);
}

// Does a kernel of the body read v, or is it copied from there?
static bool body_reads(const Plan *body, const Value *v) {
    for (int i = 1; i < body->graph->outputs.n; i++)
        if (same_place(body, body->graph->outputs.at[i], v)) return true;
    for (int i = 0; i < body->kernels.n; i++)
        for (int j = 0; j < body->kernels.at[i]->reads.n; j++)
            if (same_place(body, body->kernels.at[i]->reads.at[j], v)) return true;
    return false;
}

// What the shader touches, what it writes first.
typedef struct Touched { Arena *a; VEC(Value *) at; int writes; } Touched;

static void touch(Touched *t, Value *v) {
    for (int i = 0; i < t->at.n; i++)
        if (t->at.at[i] == v) return;
    VEC_PUSH(t->a, t->at, v);
}

static Touched touched_by(Arena *a, const Kernel *k) {
    const Node *n = k->anchor;
    const Graph *b = n->bodies[0];
    const Plan *body = k->region.bodies[0];
    Touched t = { .a = a };
    for (int i = 0; i < body->kernels.n; i++)
        for (int j = 0; j < body->kernels.at[i]->writes.n; j++) touch(&t, body->kernels.at[i]->writes.at[j]);
    for (int i = 0; i < b->inputs.n; i++)
        if (i >= 2 || body_reads(body, b->inputs.at[i])) touch(&t, b->inputs.at[i]);
    for (int i = n->n_in - 2; i < n->n_out; i++) touch(&t, n->out[i]);
    t.writes = t.at.n;
    for (int i = 0; i < body->kernels.n; i++)
        for (int j = 0; j < body->kernels.at[i]->reads.n; j++) touch(&t, body->kernels.at[i]->reads.at[j]);
    for (int i = 1; i < b->outputs.n; i++) touch(&t, b->outputs.at[i]);
    return t;
}

bool glsl_takes_loop(Arena *a, const Kernel *k) {
    if (k->kind != KERNEL_REGION || k->anchor->op != OP_Loop || !only_counts(k->anchor)) return false;
    const Plan *body = k->region.bodies[0];
    const Touched t = touched_by(a, k);
    for (int i = 0; i < body->kernels.n; i++) {
        const Kernel *each = body->kernels.at[i];
        if (each->kind != KERNEL_LOOP || each->sizes.n || each->strips || plan_ran(body, i) || !glsl_can(a, each))
            return false;
    }
    for (int i = 0; i < t.at.n; i++) {
        const Value *v = t.at.at[i];
        if (!type_is_static(&v->type) || !glsl_has_type(v->type.dtype) || !plan_value(body, v).buffer) return false;
    }
    const double spared = gpu_commands_time(body);
    return body->kernels.n && t.at.n <= MAX_PUSH - 2 && gpu_alone_time(body) <= spared
        && spared * most_trips(k->anchor) <= patience;
}

// ---------------------------------------------------------------- its shader
static void print_part(Printing *p, Text *out, int number) {
    const Kernel *k = p->kernel;
    const int outer = k->loop.spread;
    Dialect d = glsl_dialect(p);
    d.team = 1;
    text_printf(out, "void part%d(uint point) {\n", number);
    glsl_axes(p, out, outer);
    loops_print(p->arena, out, k, &d, outer, 1);
    text_printf(out, "}\n\n");
}

static void print_copy(Printing *p, Text *out, Value *to, const char *first, Value *from) {
    const char *to_element = glsl_element(p, to, arena_printf(p->arena, "(%sint(i))", first), true),
               *from_element = glsl_element(p, from, "int(i)", false);
    text_printf(out, "        for (uint i = local; i < %lldu; i += %du) %s = %s;\n",
        (long long)type_count(&from->type), THREADS, to_element, from_element);
}

static void print_number(Printing *p, Text *out, Value *v, const char *number) {
    text_printf(out, "        if (local == 0u) %s = %s;\n", glsl_element(p, v, "0", true), number);
}

static void print_trips(Printing *p, Text *out, const Kernel *k) {
    static const char sync[] = "        sync();\n";
    const Node *n = k->anchor;
    const Graph *b = n->bodies[0];
    const Plan *body = k->region.bodies[0];
    const int carried = n->n_in - 2;
    text_printf(out,
        "void sync() {\n    memoryBarrierBuffer();\n    barrier();\n}\n\n"
        "void main() {\n    const uint local = gl_LocalInvocationIndex;\n"
        "    for (int trip = 0; trip < trips; trip++) {\n");
    if (body_reads(body, b->inputs.at[0])) print_number(p, out, b->inputs.at[0], "int64_t(trip)");
    if (body_reads(body, b->inputs.at[1])) print_number(p, out, b->inputs.at[1], "uint8_t(1)");
    text_printf(out, "%s", sync);
    for (int i = 0; i < body->kernels.n; i++) {
        const Kernel *each = body->kernels.at[i];
        int64_t points = 1;
        for (int j = 0; j < each->loop.spread; j++) points *= each->axes.at[j].extent;
        text_printf(out, "        for (uint point = local; point < %lldu; point += %du) part%d(point);\n%s",
            (long long)points, THREADS, i, sync);
    }
    for (int i = carried; i < n->n_out; i++) {
        Value *v = b->outputs.at[1 + i];
        print_copy(p, out, n->out[i], arena_printf(p->arena, "trip * %lld + ", (long long)type_count(&v->type)), v);
    }
    if (carried < n->n_out) text_printf(out, "%s", sync);
    for (int i = 0; i < carried; i++) {
        if (same_place(body, b->inputs.at[2 + i], b->outputs.at[1 + i])) continue;
        print_copy(p, out, b->inputs.at[2 + i], "", b->outputs.at[1 + i]);
        text_printf(out, "%s", sync);
    }
    text_printf(out, "    }\n}\n");
}

int glsl_loop(Arena *a, const Options *o, const Layout *l, const Kernel *k, Shader *out) {
    const Plan *body = k->region.bodies[0];
    const Touched t = touched_by(a, k);
    Printing p = { .arena = a, .options = o, .layout = l, .team = { 1, true }, .coherent = true,
        .number = "trips" };
    Text text;
    text_init(&text, a);
    for (int i = 0; i < t.at.n; i++) VEC_PUSH(a, p.placed, t.at.at[i]);
    for (int i = 0; i < body->kernels.n; i++) {
        p.kernel = body->kernels.at[i];
        print_part(&p, &text, i);
    }
    print_trips(&p, &text, k);
    glsl_shader(&p, "", arena_printf(a, "layout(local_size_x = %d) in;\n", THREADS), text.at, out);
    out->points = 1;
    out->groups[0] = out->groups[1] = out->groups[2] = 1;
    return t.writes;
}
