// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: large copies on the host. One thread reads what a card has written at a fraction of the
// memory's speed, and tensors of many megabytes would take longer than their kernels: so a few threads share such a
// copy out, begun with the first one.

enum { PORTER_SHARE = 512 << 10, PORTER_LEAST = 2 << 20 }; /* bytes that are taken at a time; worth sharing out */

/* Takes shares until none is left; the lock is held before and after. */
static void porters_take(Porters *p)
{
    while (p->next < p->bytes) {
        const size_t at = p->next, bytes = p->bytes - at < PORTER_SHARE ? p->bytes - at : PORTER_SHARE;
        p->next += bytes;
        p->working++;
        pthread_mutex_unlock(&p->lock);
        memcpy(p->to + at, p->from + at, bytes);
        pthread_mutex_lock(&p->lock);
        p->working--;
    }
    if (p->working == 0)
        pthread_cond_signal(&p->done);
}

static void *porters_run(void *argument)
{
    Porters *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->stops) {
        if (p->next < p->bytes)
            porters_take(p);
        else
            pthread_cond_wait(&p->wanted, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* With the lock held: as many as there are processors beside this one, and no error where there are none. */
static void porters_begin(Porters *p)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    p->begun = true;
    while (p->count < PORTERS_MAX && p->count + 1 < processors) {
        if (pthread_create(&p->threads[p->count], NULL, porters_run, p) != 0)
            break;
        p->count++;
    }
}

/* memcpy, by several threads where it is large. */
static void porters_copy(burn_vk *vk, void *to, const void *from, size_t bytes)
{
    Porters *p = &vk->porters;
    bool mine = false;
    if (bytes >= PORTER_LEAST) {
        pthread_mutex_lock(&p->lock);
        if (!p->begun)
            porters_begin(p);
        mine = p->count > 0 && !p->busy; /* copies of other threads do without */
        if (mine) {
            p->busy = true;
            p->to = to;
            p->from = from;
            p->bytes = bytes;
            p->next = 0;
            pthread_cond_broadcast(&p->wanted);
            porters_take(p);
            while (p->working > 0)
                pthread_cond_wait(&p->done, &p->lock);
            p->bytes = p->next = 0;
            p->busy = false;
        }
        pthread_mutex_unlock(&p->lock);
    }
    if (!mine && bytes > 0)
        memcpy(to, from, bytes);
}

static void porters_open(burn_vk *vk)
{
    pthread_mutex_init(&vk->porters.lock, NULL);
    pthread_cond_init(&vk->porters.wanted, NULL);
    pthread_cond_init(&vk->porters.done, NULL);
}

static void porters_close(burn_vk *vk)
{
    Porters *p = &vk->porters;
    pthread_mutex_lock(&p->lock);
    p->stops = true;
    pthread_cond_broadcast(&p->wanted);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wanted);
    pthread_cond_destroy(&p->done);
}
