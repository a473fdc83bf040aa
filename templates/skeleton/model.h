// SPDX-License-Identifier: MIT OR Apache-2.0
/* The header of a generated file.
 *
 *   MODEL GUARD   prefix of all names, and the same in capitals
 *   TYPES         of runtime/burn.h, word for word;  THREAD_TYPES: those of threads, where HAS_THREADS
 *   TRAINING_TYPES: those of training, where HAS_TRAINING
 *   PROGRAMS      what each program declares (program.h)
 *   N_WEIGHTS     bytes of the weights' file; 0: there is none.  HAS_SIZE: they are a macro too
 *   HAS_MODEL     there is a generic descriptor
 */
#include "../../runtime/burn.h"
// holes
#define MODEL lenet
#define GUARD LENET
#define TYPES
#define HAS_THREADS 1
#define THREAD_TYPES
#define HAS_TRAINING 1
#define TRAINING_TYPES
#define PROGRAMS
#define N_WEIGHTS 64
#define HAS_SIZE 1
#define HAS_MODEL 1
// end holes
#ifndef GUARD_H
#define GUARD_H

TYPES

#if HAS_THREADS
THREAD_TYPES

#endif
#if HAS_TRAINING
TRAINING_TYPES

#endif
#ifdef __cplusplus
extern "C" {
#endif

PROGRAMS
#if N_WEIGHTS
/* Are these the weights that this code was made for? N_WEIGHTS bytes at `weights`, the content of MODEL.bin.
 * Returns 0, -1 (BURN_EINVAL) for a null pointer or another size, -6 (BURN_EFORMAT) when the content differs. */
#if HAS_SIZE
#define GUARD_WEIGHTS_BYTES N_WEIGHTS
#endif
int MODEL_weights_check(const void *weights, size_t size);

#endif
#if HAS_TRAINING
/* What all of this is, for programs that train any model. */
extern const burn_training MODEL_training;

#endif
#if HAS_MODEL
/* Names, shapes and one run function over arrays of tensors, for programs that drive any model. */
extern const burn_model MODEL_model;

#endif
#ifdef __cplusplus
}
#endif
#endif
