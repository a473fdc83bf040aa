// SPDX-License-Identifier: MIT OR Apache-2.0
// `mpirun -n 4 burncc fit`: what the ranks of a run have to do with each other; see fit_ranks.c.
#ifndef BURNCC_COMMAND_FIT_RANKS_H
#define BURNCC_COMMAND_FIT_RANKS_H
#include "module.h"
#include "runtime/learn/ranks.h"

typedef struct FitRanks {
    burn_ranks of;                                      // one rank: this process alone
    void *library;
    Text said;                                          // diagnostics of ranks but 0
} FitRanks;
// Alone, unless mpirun started this process. False with diagnostics.
bool fit_ranks_open(Arena *a, FitRanks *r);
// Is it well with all? Where not, the first rank that knows why says so. All wait for all here.
bool fit_ranks_agree(FitRanks *r, bool ok);
// The module and the initial parameters of rank 0, to all. False with diagnostics.
bool fit_ranks_module(FitRanks *r, Module **module, void **params);
void fit_ranks_close(FitRanks *r);
bool fit_ranks_leads(const FitRanks *r);                // who shows and writes

#endif
