// SPDX-License-Identifier: MIT OR Apache-2.0
// Time for each kernel of a program; see profile.c.
#ifndef BURNCC_COMMAND_PROFILE_H
#define BURNCC_COMMAND_PROFILE_H
#include "command.h"

#include "templates/profile.h"

#define PLAIN_SHARE 0.4                                 // of the seconds: runs without marks

// What a machine can do at most, on so many threads: f32 multiply-adds (two operations each), reading memory
typedef struct Limits { double gflops, gbytes; } Limits;
bool limits_take(Arena *a, const Options *o, Limits *out);      // limits.c; false with diagnostics

typedef struct KernelTime {
    const Kernel *kernel;
    const char *nodes;                                  // whose work it is: names, or operators, with + between
    int times;                                          // it is in the plan: what is computed again has several
    double ms;                                          // of a run, median; without that of kernels inside it
    double busy_ms;                                     // of all workers together; 0: it does not go in parts
} KernelTime;
typedef struct ProfileTrack { int64_t n, lost; burncc_span *span; } ProfileTrack;
typedef struct Profile {
    const char *program;
    Timing plain, marked;                               // a run without and with marks
    double device_ms;                                   // of a run on a GPU's clock; 0: there is none, but marks
    double ms;                                          // of all kernels
    int n; KernelTime *at;                              // by Kernel.number
    int n_tracks; ProfileTrack *tracks;                 // of the fastest run
    Limits limits;
} Profile;
// Builds the model twice, as it is and with marks, and times both; for a GPU, whose clock is without cost, once.
// marked: keeps the second, at whose plan the profile
// points; NULL with diagnostics
const Profile *profile_take(Arena *a, CommandOptions *c, BuildCache *marked);
// profile.c: the kernels of a plan by number, with no times yet
void profile_number(Arena *a, const Plan *p, KernelTime *at);
// profile_gpu.c: of what is built for Vulkan, with the device's limits if they are asked for; NULL, or what went wrong
const char *profile_gpu(
    Arena *a, const Built *b, const Inputs *in, const CommandOptions *c, bool limits, Profile **out);
// what the device can do at most; false with diagnostics
bool limits_take_gpu(Arena *a, int timeout, Limits *out);
// the name of the one that programs run on; NULL, or what went wrong
const char *gpu_device(Arena *a, int timeout, const char **name);
// What runs of marked code leave (Options.profile): memory that a child shares; NULL: there is none
typedef struct Collector Collector;
Collector *profile_begin(Arena *a, const Plan *p, const Options *o, void *library);
void profile_ran(void *collector);                      // behind each run; what came before the first was to warm up
void profile_handed(void *collector, const char *name, double ms);      // a burn_gpu_watcher
Profile *profile_end(Arena *a, Collector *c);           // and releases it; NULL: there was no run

// profile_print.c: of the programs of one model, a table each, an object or an array, Chrome's trace events
void profile_print(Text *t, Arena *a, int n, const Profile *const *all);
void profile_json(Text *t, const CommandOptions *c, int n, const Profile *const *all);
void profile_trace(Text *t, const char *model, int n, const Profile *const *all);
// all of these that the options ask for, on standard output and in -o; the exit status
int profile_report(Arena *a, const CommandOptions *c, int n, const Profile *const *all);
#endif
