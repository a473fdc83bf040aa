// SPDX-License-Identifier: MIT OR Apache-2.0
// What tune.c, tune_gpu.c and tune_time.c share: the kernels of a model, and forms of one that are timed against each
// other.
#ifndef BURNCC_COMMAND_TUNE_H
#define BURNCC_COMMAND_TUNE_H
#include "command.h"
#include "codegen/codegen.h"
#include "schedule/cpu/tune.h"

// times: how often it is in the model
typedef struct Case { const Plan *plan; const Kernel *kernel; int times; double expected; } Case;
typedef struct Tuner {
    Arena *arena;
    const Options *options;
    bool report;
    const char *machine;
    size_t cold_bytes;
    double deadline;
    Records records;
    VEC(Case) cases;                                    // those first that are to take longest
    double model_ms, tuned_ms; int measured;
} Tuner;
double tune_now(void);                                  // seconds
extern const double tune_tie;                           // what is faster by no more than this share is as fast
// the first choice is the cost model's
void tune_report(Arena *a, const Case *c, const Choices *choices, const double *ms);
void tune_note(Tuner *t, const Case *c, const char *best, double best_ms, double model_ms);      // as a record
// for good, and says so
void tune_keep(Tuner *t, const Case *c, const char *best, double best_ms, double model_ms);
bool tune_write(const Tuner *t);                        // the file of records
// tune_gpu.c: measures for so many seconds; false with diagnostics
bool tune_gpu(Tuner *t, CommandOptions *c);

enum { MAX_FORMS = 40 };
typedef void AloneFn(unsigned char *const *at, unsigned char *scratch);
typedef struct Contest {
    int n;
    const Kernel *kernels[MAX_FORMS];                   // the first is the cost model's choice, whose result is right
    AloneFn *const *functions;
    Alone alone;                                        // their operands
    size_t cold_bytes;                                  // calls go round so many bytes of weights
    double seconds;
} Contest;
// of each form, HUGE_VAL where its result is wrong; NULL, or what went wrong
const char *contest_run(Arena *a, const Contest *c, double *ms);
#endif
