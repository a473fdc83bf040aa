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

static void use(Arena *a, Step *at, int buffer, bool write) {
    for (int i = 0; i < at->uses.n; i++)
        if (at->uses.at[i].buffer == buffer) {
            at->uses.at[i].write |= write;
            return;
        }
    VEC_PUSH(a, at->uses, (Access){ buffer, write });
}

bool step_meets(const Step *x, const Step *y, int but) {
    for (int i = 0; i < x->uses.n; i++)
        for (int j = 0; j < y->uses.n; j++)
            if (x->uses.at[i].buffer == y->uses.at[j].buffer && x->uses.at[i].buffer != but
                && (x->uses.at[i].write || y->uses.at[j].write))
                return true;
    return false;
}

void step_use_too(Arena *a, Step *into, const Step *from) {
    for (int i = 0; i < from->uses.n; i++) use(a, into, from->uses.at[i].buffer, from->uses.at[i].write);
}

// Fields change once the loss is known, which may forbid it.
static void wait_for_loss(Steps *s, const Plan *p, Step *at, const Kernel *k) {
    bool updates = false;
    for (int i = 0; i < k->writes.n; i++)
        updates |= k->writes.at[i]->role == ROLE_PARAM || k->writes.at[i]->role == ROLE_STATE;
    for (int i = 0; updates && i < p->graph->outputs.n; i++)
        if (p->graph->outputs.at[i]->role == ROLE_LOSS) use(s->a, at, number(s, p, p->graph->outputs.at[i]), false);
}

static void read_kernel(Steps *s, const Plan *p, Step *at, const Kernel *k) {
    at->scratch += k->scratch_bytes + (kernel_packs(k) ? k->packed->bytes : 0);
    for (int j = 0; j < k->reads.n + k->writes.n; j++) {
        bool write = j >= k->reads.n;
        Value *v = write ? k->writes.at[j - k->reads.n] : k->reads.at[j];
        if (v->data) continue;
        int b = number(s, p, v);
        use(s->a, at, b, write);
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
