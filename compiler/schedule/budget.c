// SPDX-License-Identifier: MIT OR Apache-2.0
// What a program may take (--ram), after planning. In: the plan. Out: whether it keeps to it; where it does not, an
// error with what is in memory at the worst moment and who made it. Nothing is written then.
#include "schedule.h"

#include <string.h>

enum { SHOWN = 6 };                                     // buffers

bool budget_holds(const Plan *p) {
    const int64_t ram = p->options->ram, takes = p->work_bytes + plan_slack(p);
    if (!ram || takes <= ram) return true;
    Text kept;
    text_init(&kept, p->arena);
    plan_kept(p, &kept, SHOWN);
    diag_error_as(EXIT_LIMIT, NULL, "--ram: %s needs a workspace of %lld bytes, not %lld", p->graph->name,
        (long long)takes, (long long)ram);
    for (const char *line = kept.at; *line; line += strcspn(line, "\n") + 1) {
        line += strspn(line, " ");
        diag_note(NULL, "%.*s", (int)strcspn(line, "\n"), line);
    }
    return false;
}
