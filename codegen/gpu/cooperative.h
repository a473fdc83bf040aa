// SPDX-License-Identifier: MIT OR Apache-2.0
// A module with cooperative matrices for VK_KHR_cooperative_matrix.
#ifndef BURNCC_COOPERATIVE_H
#define BURNCC_COOPERATIVE_H
#include "spirv.h"

/* Rewrites a module that spirv_compile() made of a shader written with GL_NV_cooperative_matrix, in which dimensions of
 * matrices say which axis they are: 0x10000, 0x20000 or 0x30000 on top for rows of the left factor (M), columns of the
 * right (N) and terms (K). bf16: its floats of 16 bits become bfloat16. false: `module` is as it was, for it has a
 * matrix without marks or an instruction that has no successor, or memory ran out. */
bool cooperative_rewrite(SpirvModule *module, bool bf16);
#endif
