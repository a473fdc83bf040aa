/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ranks over MPI. All calls are begun and then asked for, so that who waits still sees that it is to end: a rank that
 * is lost never answers. Nothing of the learner is used here, so that `burncc fit` compiles this file alone, with the
 * MPI that there is where it runs. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "ranks_mpi.h"

#include "burn.h"

#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef struct Mpi {
    MPI_Comm all;
    int count;
    MPI_Request exchange;
    int64_t sent;
    int is_lost;
} Mpi;

/* Waits; after a signal for a fifth of a second at most. For half a millisecond it asks all the time, then pauses of
 * 50 us let others have the processor. */
static int wait_for(Mpi *m, MPI_Request *request, burn_ending *ending)
{
    double began = MPI_Wtime(), signalled = -1;
    for (int done = 0;;) {
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
        if (done) return BURN_OK;
        double now = MPI_Wtime();
        if (now - began < 0.0005) continue;
        if (signalled < 0 && ending && ending()) signalled = now;
        if (signalled >= 0 && now - signalled > 0.2) break;
        nanosleep(&(struct timespec){ 0, 50000 }, NULL);
    }
    m->is_lost = 1;
    return BURN_EDEVICE;
}

static int begin_exchange(void *own, const void *give, void *take, size_t piece)
{
    Mpi *m = own;
    if (m->is_lost || piece > INT_MAX) return m->is_lost ? BURN_EDEVICE : BURN_ELIMIT;
    m->sent += (int64_t)piece * (m->count - 1);
    int bytes = (int)piece;
    return MPI_Ialltoall(give, bytes, MPI_BYTE, take, bytes, MPI_BYTE, m->all, &m->exchange) ? BURN_EDEVICE : BURN_OK;
}

static int end_exchange(void *own, burn_ending *ending)
{
    Mpi *m = own;
    return m->is_lost ? BURN_EDEVICE : wait_for(m, &m->exchange, ending);
}

static int gather(void *own, const void *give, void *all, size_t piece, burn_ending *ending)
{
    Mpi *m = own;
    MPI_Request request;
    if (m->is_lost || piece > INT_MAX) return m->is_lost ? BURN_EDEVICE : BURN_ELIMIT;
    m->sent += (int64_t)piece * (m->count - 1);
    int bytes = (int)piece;
    if (MPI_Iallgather(give, bytes, MPI_BYTE, all, bytes, MPI_BYTE, m->all, &request)) return BURN_EDEVICE;
    return wait_for(m, &request, ending);
}

static int share(void *own, void *data, size_t bytes, burn_ending *ending)
{
    enum { MOST = 1 << 30 };
    Mpi *m = own;
    MPI_Request request;
    int error = m->is_lost ? BURN_EDEVICE : BURN_OK;
    for (uint8_t *at = data; bytes && !error;) {
        int some = bytes < MOST ? (int)bytes : MOST;
        error = MPI_Ibcast(at, some, MPI_BYTE, 0, m->all, &request) ? BURN_EDEVICE : wait_for(m, &request, ending);
        at += some;
        bytes -= (size_t)some;
    }
    return error;
}

int burn_mpi_open(int *argc, char ***argv, burn_ranks *ranks)
{
    int level, begun = 0;
    Mpi *m = calloc(1, sizeof *m);
    if (!ranks) return free(m), BURN_EINVAL;
    *ranks = (burn_ranks){ .count = 1 };
    if (!m) return BURN_ENOMEM;
    int error = MPI_Initialized(&begun) || begun || MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level)
        || MPI_Comm_dup(MPI_COMM_WORLD, &m->all) || MPI_Comm_set_errhandler(m->all, MPI_ERRORS_RETURN)
        || MPI_Comm_rank(m->all, &ranks->rank) || MPI_Comm_size(m->all, &ranks->count);
    if (error) return free(m), BURN_EDEVICE;
    m->count = ranks->count;
    ranks->own = m;
    ranks->begin_exchange = begin_exchange;
    ranks->end_exchange = end_exchange;
    ranks->gather = gather;
    ranks->share = share;
    return BURN_OK;
}

int64_t burn_mpi_sent(const burn_ranks *ranks)
{
    return ((const Mpi *)ranks->own)->sent;
}

void burn_mpi_close(burn_ranks *ranks)
{
    Mpi *m = ranks->own;
    MPI_Request request;
    /* together: an MPI may kill the others when one process has ended with an error */
    if (m && !m->is_lost && !MPI_Ibarrier(m->all, &request)) wait_for(m, &request, NULL);
    if (m && !m->is_lost) {
        MPI_Comm_free(&m->all);
        MPI_Finalize();
    }
    free(m);
    *ranks = (burn_ranks){ .count = 1 };
}
