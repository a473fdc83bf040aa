// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the pipelines of a program. What a driver makes of kernels is most of the time of a first
// load, and is done for one module as well as for the next: so several threads make them, where there are many.

enum { MAKERS_MAX = 8, MODULES_EACH = 4 }; /* threads; fewer modules than this are not worth one */

typedef struct {
    burn_vk_session *session;
    pthread_mutex_t lock; /* of all below */
    size_t next; /* the kernel that nobody has taken yet */
    int code; /* the first error, behind which no more are begun, and its text: that of a thread is the thread's own */
    char text[sizeof error.text];
} Makers;

/* The first kernel with the module of kernel k, whose pipeline it has, too. */
static size_t kernel_first(const burn_vk *vk, const burn_vk_program *p, size_t k)
{
    size_t first = 0;
    while (kernel_chosen(vk, p, first)->spirv != kernel_chosen(vk, p, k)->spirv)
        first++;
    return first;
}

static void *pipelines_some(void *argument)
{
    Makers *m = argument;
    burn_vk_session *s = m->session;
    burn_vk *vk = s->vk;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        const size_t k = m->code == BURN_OK ? m->next++ : s->program->kernel_count;
        pthread_mutex_unlock(&m->lock);
        if (k >= s->program->kernel_count)
            return NULL;
        if (kernel_first(vk, s->program, k) < k)
            continue;
        const burn_vk_kernel *kernel = kernel_chosen(vk, s->program, k);
        const int rc = vk_result(vk, pipeline_make(vk->device, vk->cache, s->layout, kernel->spirv,
                                         kernel->spirv_words, &s->pipelines[k]), kernel->name);
        pthread_mutex_lock(&m->lock);
        if (rc != BURN_OK && m->code == BURN_OK) {
            m->code = rc;
            memcpy(m->text, error.text, sizeof m->text);
        }
        pthread_mutex_unlock(&m->lock);
    }
}

static size_t makers_count(const burn_vk *vk, const burn_vk_program *p)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t modules = 0;
    for (size_t k = 0; k < p->kernel_count; k++)
        modules += kernel_first(vk, p, k) == k;
    const size_t most = processors < 1 ? 1 : processors > MAKERS_MAX ? MAKERS_MAX : (size_t)processors;
    return modules / MODULES_EACH < most ? modules / MODULES_EACH : most;
}

/* All of them, by this thread and by others if they can be had. */
static int pipelines_create(burn_vk_session *s)
{
    burn_vk *vk = s->vk;
    const burn_vk_program *p = s->program;
    Makers m = { .session = s };
    pthread_t threads[MAKERS_MAX];
    size_t n = 0;
    pthread_mutex_init(&m.lock, NULL);
    for (size_t most = makers_count(vk, p); n + 1 < most; n++)
        if (pthread_create(&threads[n], NULL, pipelines_some, &m) != 0)
            break;
    pipelines_some(&m);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&m.lock);
    if (m.code != BURN_OK)
        return vk_fail(vk, m.code, "%s", m.text);
    for (size_t k = 0; k < p->kernel_count; k++)
        s->pipelines[k] = s->pipelines[kernel_first(vk, p, k)];
    return BURN_OK;
}
