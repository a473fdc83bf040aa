/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Several processes that learn one model together; ranks_mpi.h makes them of MPI's. All call these functions in one
 * order, with pieces of the same size; 0 or BURN_E..., BURN_EDEVICE: another rank is lost. */
#ifndef BURN_RANKS_H
#define BURN_RANKS_H

#include <stddef.h>

/* Is this process to end? Who waits for others then waits no longer than a fifth of a second; NULL: as long as it
 * takes. */
typedef int burn_ending(void);

typedef struct burn_ranks {
    void *own;
    int rank, count;
    /* Rank k's piece number r comes to be piece number k at rank r. Both arrays, of `count` pieces, stay as they are
     * until end_exchange returns. */
    int (*begin_exchange)(void *own, const void *give, void *take, size_t piece);
    int (*end_exchange)(void *own, burn_ending *ending);
    /* Everybody's piece, in the order of ranks, to all. */
    int (*gather)(void *own, const void *give, void *all, size_t piece, burn_ending *ending);
    /* Rank 0's bytes to all. */
    int (*share)(void *own, void *data, size_t bytes, burn_ending *ending);
} burn_ranks;

#endif
