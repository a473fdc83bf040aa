// SPDX-License-Identifier: MIT OR Apache-2.0
// What is planned for values: a table of the plan by their numbers, so that one graph can be planned more than once.
#include "schedule.h"

ValuePlan plan_value(const Plan *p, const Value *v) {
    return v->id < p->values->by_id.n ? p->values->by_id.at[v->id] : (ValuePlan){ 0 };
}

static ValuePlan *value_entry(const Plan *p, const Value *v) {
    while (p->values->by_id.n <= v->id) VEC_PUSH(p->arena, p->values->by_id, (ValuePlan){ 0 });
    return &p->values->by_id.at[v->id];
}

void plan_set_buffer(const Plan *p, const Value *v, Buffer *b) { value_entry(p, v)->buffer = b; }

void plan_set_home(const Plan *p, const Value *v, Value *home, Dim at) {
    ValuePlan *entry = value_entry(p, v);
    entry->home = home;
    entry->home_at = at;
}
