/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A pool of threads. In: tasks of numbered parts. Out: all parts done.
 *
 * The idea: a run posts its task to a slot per thread, one store each, and every thread looks at its own slot
 * only. A slot holds one word that says which run it is for and how many of its parts nobody has begun; taking a
 * part is one compare-and-swap on that word, by the slot's own thread or, when it is late, by any other. So a
 * sleeping or displaced worker costs nothing but its help, and a word of a run that is over cannot be taken by
 * mistake. Threads that wait look for a bounded time, then sleep: a wake-up takes 40 to 50 us, a look 0.2. Who wakes
 * one first bars it from the processors of those that are awake: kernels like to wake a thread beside the one that
 * wakes it, where it would wait until that one has done everything.
 */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && !defined(BURN_THREADS_NO_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#define HAVE_FUTEX 1
#else
#define HAVE_FUTEX 0
#endif

/* LINE: two cache lines, which some processors fetch together */
enum { MAX_THREADS = 1024, LEFT_BITS = 24, LINE = 128 };
enum { LOOKS = 32 };                                      /* between two looks at the clock */
static const int64_t spin_ns = 50000, yield_ns = 500000; /* after so long give way to others; then sleep */
/* others took that long: who sleeps is back sooner than who queues with them */
static const int64_t busy_ns = 20000;
static const uint64_t left_mask = ((uint64_t)1 << LEFT_BITS) - 1;

typedef struct Slot {
    alignas(LINE) _Atomic uint64_t word; /* number of the run, then LEFT_BITS: parts that nobody has begun */
    void (*task)(void *argument, int part);
    void *argument;
    _Atomic uint32_t asleep; /* 1: its thread waits for this to become 0; 2: is about to be woken */
    _Atomic int processor;   /* its thread was seen on last */
    bool barred;             /* from some of the `usual` processors, by who woke it */
#ifdef __linux__
    cpu_set_t usual;
#endif
} Slot;

typedef struct Pool {
    Slot *slots; /* by thread; the caller's is the first */
    pthread_t *workers;
    int count;
    bool spins, pins;
    _Atomic int ends;
    pthread_mutex_t lock; /* without futexes: of `awake` */
    pthread_cond_t awake;
    alignas(LINE) _Atomic int busy; /* some thread's run has the workers */
    uint64_t runs;                  /* so far */
    alignas(LINE) _Atomic int pending; /* parts that are not done */
    _Atomic uint32_t waits;            /* 1: the caller sleeps until pending is 0 */
} Pool;

typedef struct Worker {
    Pool *pool;
    int thread, processor; /* -1: any */
} Worker;

/* ---- sleeping: while *word is not 0 */

#if HAVE_FUTEX
static void sleep_on(Pool *p, _Atomic uint32_t *word)
{
    (void)p;
    for (uint32_t is; (is = atomic_load(word));)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0);
}

static void wake(Pool *p, _Atomic uint32_t *word)
{
    (void)p;
    atomic_store(word, 0);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#else
static void sleep_on(Pool *p, _Atomic uint32_t *word)
{
    pthread_mutex_lock(&p->lock);
    while (atomic_load(word))
        pthread_cond_wait(&p->awake, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void wake(Pool *p, _Atomic uint32_t *word)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(word, 0);
    pthread_cond_broadcast(&p->awake);
    pthread_mutex_unlock(&p->lock);
}
#endif

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Looks until ready(), or until it has taken too long: false. */
static bool look(Pool *p, bool (*ready)(const Pool *p, const Slot *s), const Slot *s)
{
    int64_t start = 0;
    while (p->spins) {
        for (int i = 0; i < LOOKS; i++) {
            if (ready(p, s))
                return true;
            relax();
        }
        const int64_t now = now_ns();
        if (!start)
            start = now;
        if (now - start > yield_ns)
            break;
        if (now - start < spin_ns)
            continue;
        sched_yield();
        if (now_ns() - now > busy_ns)
            break;
    }
    return ready(p, s);
}

static bool has_work(const Pool *p, const Slot *s) {
    return (atomic_load(&s->word) & left_mask) || atomic_load(&p->ends);
}

static bool all_done(const Pool *p, const Slot *s)
{
    (void)s;
    return atomic_load(&p->pending) == 0;
}

/* ---- which processors */

static void stay_on(int processor)
{
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
#else
    (void)processor;
#endif
}

static void note_processor(Slot *s)
{
#ifdef __linux__
    atomic_store_explicit(&s->processor, sched_getcpu(), memory_order_relaxed);
#else
    (void)s;
#endif
}

/* Before thread t is woken. */
static void bar(Pool *p, int t)
{
#ifdef __linux__
    Slot *s = &p->slots[t];
    cpu_set_t left;
    const pthread_t thread = p->workers[t - 1];
    if (p->pins || pthread_getaffinity_np(thread, sizeof s->usual, &s->usual))
        return;
    left = s->usual;
    note_processor(&p->slots[0]);
    for (int i = 0; i < p->count; i++) {
        const int processor = atomic_load_explicit(&p->slots[i].processor, memory_order_relaxed);
        if (i != t && processor >= 0 && processor < CPU_SETSIZE && !atomic_load(&p->slots[i].asleep))
            CPU_CLR((size_t)processor, &left);
    }
    s->barred = CPU_COUNT(&left) && !pthread_setaffinity_np(thread, sizeof left, &left);
#else
    (void)p;
    (void)t;
#endif
}

/* By a thread that has been woken: it stays where it is, and may be moved wherever it might before. */
static void unbar(Slot *s)
{
#ifdef __linux__
    if (s->barred)
        pthread_setaffinity_np(pthread_self(), sizeof s->usual, &s->usual);
#endif
    s->barred = false;
}

/* ---- work */

/* Does the parts of a slot that nobody has begun: of thread t those are t, t + count, ... The number of parts done. */
static int work(Pool *p, int t)
{
    Slot *s = &p->slots[t];
    uint64_t word = atomic_load(&s->word);
    int done = 0;
    while (word & left_mask) {
        if (!atomic_compare_exchange_weak(&s->word, &word, word - 1))
            continue;
        s->task(s->argument, t + ((int)(word & left_mask) - 1) * p->count);
        done++;
        word = atomic_load(&s->word);
    }
    return done;
}

/* Its own parts, then those of threads that are late. True: it has done the last of all. What is done is told at once,
 * before it looks for more: the caller may be waiting for just that. */
static bool work_all(Pool *p, int self)
{
    for (int i = 0; i < p->count; i++) {
        const int done = work(p, (self + i) % p->count);
        if (done && atomic_fetch_sub(&p->pending, done) == done)
            return true;
    }
    return false;
}

static void sleep_until_work(Pool *p, Slot *s)
{
    uint32_t asleep = 1;
    atomic_store(&s->asleep, 1);
    if (has_work(p, s) && atomic_compare_exchange_strong(&s->asleep, &asleep, 0))
        return;
    sleep_on(p, &s->asleep);
    unbar(s);
}

static void *worker(void *argument)
{
    const Worker w = *(Worker *)argument;
    Pool *p = w.pool;
    Slot *s = &p->slots[w.thread];
    free(argument);
    if (w.processor >= 0)
        stay_on(w.processor);
    while (!atomic_load(&p->ends)) {
        if (!look(p, has_work, s)) {
            sleep_until_work(p, s);
            continue;
        }
        if (work_all(p, w.thread) && atomic_load(&p->waits))
            wake(p, &p->waits);
        note_processor(s);
    }
    return NULL;
}

static void post(Pool *p, int t, uint64_t word, void (*task)(void *argument, int part), void *argument)
{
    Slot *s = &p->slots[t];
    s->task = task;
    s->argument = argument;
    atomic_store(&s->word, word);
    uint32_t asleep = 1;
    if (t && atomic_load(&s->asleep) && atomic_compare_exchange_strong(&s->asleep, &asleep, 2)) {
        bar(p, t);
        wake(p, &s->asleep);
    }
}

static void pool_run(void *pool, int parts, void (*task)(void *argument, int part), void *argument)
{
    Pool *p = pool;
    if (parts < 2 || p->count < 2 || parts > (int)left_mask || atomic_exchange(&p->busy, 1)) {
        for (int part = 0; part < parts; part++)
            task(argument, part);
        return;
    }
    p->runs++;
    atomic_store_explicit(&p->pending, parts, memory_order_relaxed);
    for (int t = p->count - 1; t >= 0; t--)
        if (t < parts)
            post(p, t, p->runs << LEFT_BITS | (uint64_t)((parts - t + p->count - 1) / p->count), task, argument);
    if (!work_all(p, 0))
        while (!look(p, all_done, NULL)) {
            atomic_store(&p->waits, 1);
            if (!all_done(p, NULL))
                sleep_on(p, &p->waits);
            atomic_store(&p->waits, 0);
        }
    atomic_store(&p->busy, 0);
}

/* ---- opening and closing */

/* The processors that this process may use, from the one after the caller's on; their number. */
static int find_processors(int *out, int most)
{
    int n = 0;
#ifdef __linux__
    cpu_set_t set;
    const int self = sched_getcpu();
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int i = 1; i <= CPU_SETSIZE && n < most; i++) {
            const int processor = (self + i) % CPU_SETSIZE;
            if (CPU_ISSET((size_t)processor, &set))
                out[n++] = processor;
        }
#endif
    if (!n)
        for (long all = sysconf(_SC_NPROCESSORS_ONLN); n < most && n < (all > 0 ? all : 1); n++)
            out[n] = -1;
    return n;
}

static bool start(Pool *p, int thread, int processor)
{
    Worker *w = malloc(sizeof *w);
    if (!w)
        return false;
    *w = (Worker){p, thread, processor};
    if (!pthread_create(&p->workers[thread - 1], NULL, worker, w))
        return true;
    free(w);
    return false;
}

static void pool_free(Pool *p, int started)
{
    atomic_store(&p->ends, 1);
    for (int t = 1; t <= started; t++)
        wake(p, &p->slots[t].asleep);
    for (int t = 1; t <= started; t++)
        pthread_join(p->workers[t - 1], NULL);
    pthread_cond_destroy(&p->awake);
    pthread_mutex_destroy(&p->lock);
    free(p->slots);
    free(p->workers);
    free(p);
}

static void *lines(size_t bytes) /* zeroed, aligned for slots */
{
    const size_t whole = (bytes + LINE - 1) / LINE * LINE;
    void *at = aligned_alloc(LINE, whole);
    return at ? memset(at, 0, whole) : NULL;
}

static Pool *pool_new(int count, unsigned flags)
{
    Pool *p = lines(sizeof *p);
    if (!p)
        return NULL;
    p->slots = lines((size_t)count * sizeof *p->slots);
    p->workers = calloc((size_t)count, sizeof *p->workers);
    p->count = count;
    p->spins = !(flags & BURN_THREADS_NO_SPIN);
    p->pins = flags & BURN_THREADS_PIN;
    if (p->slots && p->workers && !pthread_mutex_init(&p->lock, NULL)) {
        if (!pthread_cond_init(&p->awake, NULL))
            return p;
        pthread_mutex_destroy(&p->lock);
    }
    free(p->slots);
    free(p->workers);
    free(p);
    return NULL;
}

int burn_threads_open(burn_threads *out, int count, unsigned flags)
{
    int processors[MAX_THREADS], started = 0;
    if (out)
        *out = (burn_threads){NULL, NULL};
    if (!out || count < 0 || count > MAX_THREADS)
        return BURN_EINVAL;
    const int usable = find_processors(processors, MAX_THREADS);
    if (!count)
        count = usable;
    Pool *p = pool_new(count, flags);
    if (!p)
        return BURN_ENOMEM;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < count && start(p, started + 1, flags & BURN_THREADS_PIN ? processors[started % usable] : -1))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started + 1 < count) {
        pool_free(p, started);
        return BURN_ENOMEM;
    }
    *out = (burn_threads){p, pool_run};
    return BURN_OK;
}

void burn_threads_close(burn_threads *threads)
{
    if (!threads || !threads->pool)
        return;
    Pool *p = threads->pool;
    *threads = (burn_threads){NULL, NULL};
    pool_free(p, p->count - 1);
}
