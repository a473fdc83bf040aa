// SPDX-License-Identifier: MIT OR Apache-2.0
// What a program may take, after planning: --ram of its workspace, --flash of its constants. In: the plan. Out: whether
// it keeps to them; where it does not, an error with what takes most: what is in memory at the worst moment and who
// made it, or the largest constants. Nothing is written then.
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 6 };                                     // buffers, constants

void plan_note_kept(const Plan *p, int shown) {
    Text kept;
    text_init(&kept, p->arena);
    plan_kept(p, &kept, shown);
    for (const char *line = kept.at; *line; line += strcspn(line, "\n") + 1) {
        line += strspn(line, " ");
        diag_note(NULL, "%.*s", (int)strcspn(line, "\n"), line);
    }
}

static bool ram_holds(const Plan *p) {
    const int64_t ram = p->options->ram, takes = p->work_bytes + plan_slack(p);
    if (!ram || takes <= ram) return true;
    diag_error_as(EXIT_LIMIT, NULL, "--ram: %s needs a workspace of %lld bytes, not %lld", p->graph->name,
        (long long)takes, (long long)ram);
    plan_note_kept(p, SHOWN);
    if (p->options->no_fuse) diag_note(NULL, "without --no-fuse kernels may go a few rows at a time");
    return false;
}

static bool is_constant(const Buffer *b) { return b->place == PLACE_WEIGHT && b->value; }

static int64_t constants_of(const Plan *p) {
    int64_t bytes = 0;
    for (int i = 0; i < p->buffers.n; i++) bytes += is_constant(p->buffers.at[i]) ? p->buffers.at[i]->bytes : 0;
    return bytes;
}

static int by_bytes(const void *x, const void *y) {
    const Buffer *a = *(const Buffer *const *)x, *b = *(const Buffer *const *)y;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : a->id - b->id;
}

static bool flash_holds(const Plan *p) {
    const int64_t flash = p->options->flash, takes = constants_of(p);
    if (!flash || takes <= flash) return true;
    const Buffer **largest = NEW_ARRAY(p->arena, const Buffer *, p->buffers.n + 1);
    int n = 0;
    for (int i = 0; i < p->buffers.n; i++)
        if (is_constant(p->buffers.at[i])) largest[n++] = p->buffers.at[i];
    qsort(largest, (size_t)n, sizeof *largest, by_bytes);
    diag_error_as(EXIT_LIMIT, NULL, "--flash: the constants of %s take %lld bytes, not %lld", p->graph->name,
        (long long)takes, (long long)flash);
    for (int i = 0; i < n && i < SHOWN; i++)
        diag_note(NULL, "%lld %s of %s", (long long)largest[i]->bytes,
            type_text(p->arena, p->graph, &largest[i]->value->type), p->kernels.at[largest[i]->first]->name);
    return false;
}

bool budget_holds(const Plan *p) {
    const bool ram = ram_holds(p), banks = banks_hold(p), flash = flash_holds(p);
    return ram && banks && flash;
}
