// SPDX-License-Identifier: MIT OR Apache-2.0
// Training code for a program that drives any; see c/module.c.
#ifndef BURNCC_CODEGEN_MODULE_H
#define BURNCC_CODEGEN_MODULE_H
#include "grad/train.h"
#include "plan.h"

void codegen_module(Arena *a, const Options *o, int n, const Program *programs, const Training *t, Text *out);
#endif
