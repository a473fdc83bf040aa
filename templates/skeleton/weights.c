// SPDX-License-Identifier: MIT OR Apache-2.0
/* The check of a weights' file: its size, its first bytes, and the sum that codegen/weights.c computes in the same way.
 *
 *   MODEL      prefix of the model's names
 *   N_WEIGHTS  bytes of the file;  N_HEADER: of them, those before the weights
 *   SEED PRIME what the sum starts from and is multiplied by;  SUM: what it has to be
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define MODEL lenet
#define N_WEIGHTS 128
#define N_HEADER 64
#define SEED UINT64_C(1)
#define PRIME UINT64_C(3)
#define SUM UINT64_C(5)
// end holes
int MODEL_weights_check(const void *weights, size_t size)
{
    const unsigned char *at = (const unsigned char *)weights;
    uint64_t sum = SEED, word;
    if (!weights || size != N_WEIGHTS) return -1; /* BURN_EINVAL */
    for (size_t i = N_HEADER; i + 8 <= size; i += 8) {
        memcpy(&word, at + i, 8);
        sum = (sum ^ word) * PRIME;
        sum ^= sum >> 32;
    }
    return memcmp(at, "burnw1", 7) || sum != SUM ? -6 : 0; /* BURN_EFORMAT */
}
