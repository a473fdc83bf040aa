// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the pipelines of a program, which several threads make where there are many.

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

static size_t modules_count(const burn_vk *vk, const burn_vk_program *p)
{
    size_t modules = 0;
    for (size_t k = 0; k < p->kernel_count; k++)
        modules += kernel_first(vk, p, k) == k;
    return modules;
}

static int pipelines_create(burn_vk_session *s)
{
    burn_vk *vk = s->vk;
    const burn_vk_program *p = s->program;
    Makers m = { .session = s };
    pthread_mutex_init(&m.lock, NULL);
    makers_run(pipelines_some, &m, modules_count(vk, p));
    pthread_mutex_destroy(&m.lock);
    if (m.code != BURN_OK)
        return vk_fail(vk, m.code, "%s", m.text);
    for (size_t k = 0; k < p->kernel_count; k++)
        s->pipelines[k] = s->pipelines[kernel_first(vk, p, k)];
    return BURN_OK;
}
