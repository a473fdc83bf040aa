// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of `burncc quantize` share; see quantize.c.
#ifndef BURNCC_COMMAND_QUANTIZING_H
#define BURNCC_COMMAND_QUANTIZING_H
#include "fit.h"
#include "quantize/quantize.h"

typedef struct Quantizing {
    Arena *a;                                           // the command's
    CommandOptions *c;
    Options *o;
    FitMemory memory;
    FitModel model;
    burn_source data, apart;                            // apart: of --valid
    const burn_dataset *seen, *measured;                // what ranges are taken from, what accuracy is measured on
    const burn_field *target;                           // NULL: there are no labels
    Quantizer *q;
    Built *simulation;
    FitRun floats, whole;                               // the simulation twice, each with inputs of its own
    double *noise;                                      // of each point: signal to noise in dB; of each unit alone
    double *alone;
    int64_t ram; bool *refused;                         // --ram, 0: any; units whose floats take more of it
} Quantizing;

int64_t quantizing_item(const burn_dataset *data, int64_t n, int64_t i);        // the i-th of n, from all over it
void quantizing_program(Quantizing *z);                 // the plan into the simulation
// Both over n items: of each point how large the error is, in dB; the first output's comes behind them.
bool quantizing_noise(Quantizing *z, int64_t n, double *db);
// Of the first n items: the first metric, of floats and of integers, and how large the error of the output is
typedef struct Measured { double floats, whole, db; int64_t items; const char *metric; } Measured;
bool quantizing_measure(Quantizing *z, int64_t n, FitRun *whole, Measured *m);
// quantize_search.c: which units stay float for --accuracy and --budget
bool quantizing_search(Quantizing *z);
int64_t quantizing_bytes(const Quantizer *q, bool floats);      // of the weights and biases
// quantize_report.c
int quantizing_print(Quantizing *z, const Measured *m);
int quantizing_print_only(Quantizing *z, const QuantStored *s);
#endif
