// SPDX-License-Identifier: MIT OR Apache-2.0
// Time for each kernel of a program; see profile.c.
#ifndef BURNCC_COMMAND_PROFILE_H
#define BURNCC_COMMAND_PROFILE_H
#include "command.h"

#include "templates/profile.h"

// What a machine can do at most, on so many threads: f32 multiply-adds (two operations each), reading memory
typedef struct Limits { double gflops, gbytes; } Limits;
bool limits_take(Arena *a, const Options *o, Limits *out);      // limits.c; false with diagnostics

typedef struct KernelTime {
    const Kernel *kernel;
    const char *nodes;                                  // whose work it is: names, or operators, with + between
    double ms;                                          // of a run, median; without that of kernels inside it
    double busy_ms;                                     // of all workers together; 0: it does not go in parts
} KernelTime;
typedef struct ProfileTrack { int64_t n, lost; burncc_span *span; } ProfileTrack;
typedef struct Profile {
    const char *program;
    Timing plain, marked;                               // a run without and with marks
    double ms;                                          // of all kernels
    int n; KernelTime *at;                              // by Kernel.number
    int n_tracks; ProfileTrack *tracks;                 // of the fastest run
    Limits limits;
} Profile;
// Builds the model twice, as it is and with marks, and times both; b: the marked one, whose plan the profile points at
const Profile *profile_take(Arena *a, CommandOptions *c, BuildCache *marked);      // NULL with diagnostics
void profile_print(Text *t, Arena *a, const Profile *p);
void profile_json(Text *t, const CommandOptions *c, const Profile *p);
void profile_trace(Text *t, const char *model, const Profile *p);  // Chrome's trace events
#endif
