// SPDX-License-Identifier: MIT OR Apache-2.0
// The kernels of a plan as steps over numbered buffers. In: a plan's kernels in order, whose inputs and outputs have
// their places. Out: for each step the buffers that it reads and writes, whoever's names they have.
#include "steps.h"

static int number(Steps *s, const Plan *p, Value *v) {
    int64_t offset;
    Buffer *b = buffer_owner(buffer_of(p, v), &offset);
    bool in_work = b->place == PLACE_WORK && !b->value->is_input;
    for (int i = 1; i < s->buffers.n; i++)
        if (s->buffers.at[i] == b) return i;
    for (int i = 0; i < p->graph->outputs.n; i++) in_work = in_work && p->graph->outputs.at[i] != b->value;
    VEC_PUSH(s->a, s->buffers, b);
    VEC_PUSH(s->a, s->in_work, in_work);
    return s->buffers.n - 1;
}

static void use(const Steps *s, Step *at, int buffer, bool write) {
    for (int i = 0; i < at->uses.n; i++)
        if (at->uses.at[i].buffer == buffer) {
            at->uses.at[i].write |= write;
            return;
        }
    VEC_PUSH(s->a, at->uses, (Access){ buffer, write });
}

// Fields change once the loss is known, which may forbid it.
static void wait_for_loss(Steps *s, const Plan *p, Step *at, const Kernel *k) {
    bool updates = false;
    for (int i = 0; i < k->writes.n; i++)
        updates |= k->writes.at[i]->role == ROLE_PARAM || k->writes.at[i]->role == ROLE_STATE;
    for (int i = 0; updates && i < p->graph->outputs.n; i++)
        if (p->graph->outputs.at[i]->role == ROLE_LOSS) use(s, at, number(s, p, p->graph->outputs.at[i]), false);
}

static void read_kernel(Steps *s, const Plan *p, Step *at, const Kernel *k) {
    at->scratch += k->scratch_bytes + (kernel_packs(k) ? k->packed->bytes : 0);
    for (int j = 0; j < k->reads.n + k->writes.n; j++) {
        bool write = j >= k->reads.n;
        Value *v = write ? k->writes.at[j - k->reads.n] : k->reads.at[j];
        if (v->data) continue;
        int b = number(s, p, v);
        use(s, at, b, write);
        if (!write && s->in_work.at[b] && kernel_in_place(s->a, k, v)) VEC_PUSH(s->a, at->reuse, b);
    }
    wait_for_loss(s, p, at, k);
}

const Steps *steps_read(Arena *a, const Plan *p) {
    Steps *s = NEW(a, Steps);
    s->a = a;
    VEC_PUSH(a, s->buffers, NULL);
    VEC_PUSH(a, s->in_work, false);
    s->at = NEW_ARRAY(a, Step, p->kernels.n + 1);
    for (int next = 0; next < p->kernels.n; next += s->at[s->n++].kernels) {
        Step *at = &s->at[s->n];
        const Strips *strips = p->kernels.at[next]->strips;
        *at = (Step){ .kernel = next, .kernels = strips ? strips->n : 1 };
        for (int m = 0; m < at->kernels; m++) read_kernel(s, p, at, p->kernels.at[next + m]);
    }
    return s;
}
