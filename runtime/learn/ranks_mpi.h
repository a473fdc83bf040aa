/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Several processes that learn one model together: burn_ranks (ranks.h) of MPI's. With Open MPI or MPICH, which
 * libburn_mpi links:
 *
 *     burn_ranks ranks;
 *     int error = burn_mpi_open(&argc, &argv, &ranks);
 *     const burn_learning how = { ..., .ranks = &ranks, .interrupts = 1, .watchers = ranks.rank ? NULL : &lines };
 *     ...
 *     burn_mpi_close(&ranks);
 *
 * When a process is lost Open MPI's mpirun ends the others: with SIGTERM, and with SIGKILL a second later, or what
 * --mca odls_base_sigkill_timeout SECONDS says, so that large models have the time to be saved. Who waits for others
 * when SIGTERM comes waits for a fifth of a second more, then takes them for lost: BURN_EDEVICE. */
#ifndef BURN_RANKS_MPI_H
#define BURN_RANKS_MPI_H

#include "ranks.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins MPI, once in a process. BURN_EDEVICE: it cannot be begun, or is begun already. */
int burn_mpi_open(int *argc, char ***argv, burn_ranks *ranks);
/* Bytes that this process has sent to others so far. */
int64_t burn_mpi_sent(const burn_ranks *ranks);
/* Ends MPI; where a rank is lost the process may only end. */
void burn_mpi_close(burn_ranks *ranks);

#ifdef __cplusplus
}
#endif
#endif
