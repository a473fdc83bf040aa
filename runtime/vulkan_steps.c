// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Calls of C functions whose kernels run on a GPU. In: what a generated function does, step by step (burn_gpu_call).
// Out: command buffers that are submitted where the host wants to look. The one idea: one buffer holds all that
// kernels touch and the host has it mapped, so that the function is the C of any target with its pointers, and a
// kernel's operand is a pointer less the buffer's. Kernels that touch common bytes get a barrier between them; others
// overlap.

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* sysconf */
#endif

#include "vulkan.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vulkan/common.h"

enum {
    ALIGNMENT = 256, /* of what lies in the buffer */
    OPERAND_ALIGNMENT = 16, /* of what kernels may load four floats at a time from */
    PENDING_MAX = 64, /* ranges that are watched; more: a barrier */
    WINDOWS_PER_RANGE = 64, /* windows begin so often in the bytes that a kernel may see */
    WINDOWS_MAX = 4096,
    SETS_MAX = 4096,
    COUNTERS = 1 << 16, /* words that dispatches count in, by turns */
    RECORDED = 32, /* lists of commands that are kept */
    FIRST_SHARE = 32, LAST_SHARE = 512, /* commands of a call that are submitted while the host makes the next */
    NEAR = 1024, /* kernels that are found at once */
    SPIN_NS = 4000000, /* what is over sooner is waited for awake, as in vulkan.c */
    DEVICES_MAX = 16,
};

typedef struct Place { /* a part of the buffer; they follow one another */
    size_t at, bytes;
    bool used, temporary; /* temporary: until the call ends */
} Place;

typedef enum { FOR_THE_CALLER, FOR_A_CALL, FOR_CONSTANTS } Use;
typedef struct {
    uint64_t key;
    size_t words;
    bool instead; /* it is that of what runs instead */
    const burn_gpu_kernel *of;
    VkPipeline pipeline; /* or VK_NULL_HANDLE; result: of making it */
    VkResult result;
} Known;
typedef struct { uint64_t key; size_t bytes; unsigned char *at; } Constants;
typedef struct { void *to; const void *from; size_t bytes; } Back; /* goes back at the end of the call */
typedef struct { size_t from, to; bool written; } Range;
typedef struct { size_t window[BINDINGS]; VkDescriptorSet set; } Sight; /* what a kernel sees: parts of the buffer */

typedef enum { COMMAND_KERNEL, COMMAND_COPY, COMMAND_ZERO, COMMAND_PUT } CommandKind;

typedef struct Command {
    CommandKind kind;
    bool apart; /* behind a barrier */
    uint32_t words; /* of push */
    size_t known; /* of a kernel: its pipeline, and what it sees */
    VkDescriptorSet set;
    uint32_t groups[3];
    uint32_t push[PUSH_WORDS_MAX]; /* of a kernel; or the bytes that are put */
    VkBuffer to; /* of others */
    VkBufferCopy region; /* or of its destination only */
} Command;

typedef struct Recorded { /* a list with its commands as they were recorded */
    VkCommandBuffer commands;
    Command *list;
    size_t count, room; /* count: 0: there is none */
    bool runs; /* or may run, until the call has waited */
} Recorded;

struct Device;
typedef struct {
    burn_gpu_call calls; /* first: what generated code has of it */
    struct Device *device;
    burn_vk *vk;
    burn_vk_own gpu;
    VkPhysicalDeviceMemoryProperties kinds;
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *map;
    size_t bytes;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkDescriptorPool descriptors;
    Sight *sights;
    size_t sight_count, sight_room;
    /* window i: `range` bytes of the buffer from i * stride on, or what is left: what lies at its end, as bytes of
     * constants do, is not so far from a window's beginning that its number is no int */
    size_t range, stride, window_count;
    VkCommandPool pool;
    Recorded recorded[RECORDED];
    size_t recorded_next; /* which of them makes room */
    Command *list; /* what the call has handed over since the host looked last */
    size_t count, room;
    size_t share; /* so many commands are worth submitting */
    bool runs; /* some were submitted that nobody has waited for */
    VkFence fence;
    bool spins; /* the host watches for the end of a call before it sleeps */
    Place *places;
    size_t place_count, place_room;
    size_t used, used_most; /* bytes of the places in use */
    Known *known;
    size_t known_count, known_room, known_made; /* made: so many have their pipelines, */
    size_t known_kept; /* and so many were made when the file of burn_gpu_cache was looked at last */
    uint32_t near[NEAR]; /* by key: 1 + which of known was found last */
    Constants *constants;
    size_t constants_count, constants_room;
    Back *backs;
    size_t back_count, back_room;
    bool is_cached; /* the host reads the buffer at full speed */
    VkBuffer back_buffer; /* where not, what goes back comes by this one; made when first wanted */
    VkDeviceMemory back_memory;
    unsigned char *back_map;
    size_t back_bytes;
    uint32_t *counters; /* all 0 when no kernel runs */
    size_t counters_next;
    Range pending[PENDING_MAX];
    int pending_count;
    VkQueryPool times; /* while kernels are watched: ticks before and behind each */
    double tick; /* in ms */
    burn_gpu_watcher *watcher;
    void *watching;
    int code;
} Steps;

typedef struct Device { /* one that threads use; the first is the one that BURN_VK_DEVICE names */
    char name[64];
    pthread_mutex_t lock; /* held by the call that runs */
    Steps *open;
} Device;

static Device devices[DEVICES_MAX] = { { .lock = PTHREAD_MUTEX_INITIALIZER } };
static size_t device_count = 1;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local Device *used; /* by this thread; NULL: the first */
static _Thread_local char error_text[256];

static const burn_gpu_call steps_calls;

#include "vulkan/steps_memory.h"
#include "vulkan/steps_time.h"
#include "vulkan/steps_commands.h"
#include "vulkan/steps_back.h"

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void steps_free(Steps *s)
{
    const VkDevice device = s->gpu.device;
    if (device != VK_NULL_HANDLE) {
        for (size_t i = 0; i < s->known_count; i++)
            vkDestroyPipeline(device, s->known[i].pipeline, NULL);
        vkDestroyQueryPool(device, s->times, NULL);
        vkDestroyFence(device, s->fence, NULL);
        vkDestroyCommandPool(device, s->pool, NULL);
        vkDestroyPipelineLayout(device, s->layout, NULL);
        vkDestroyDescriptorPool(device, s->descriptors, NULL);
        vkDestroyDescriptorSetLayout(device, s->set_layout, NULL);
        back_close(s);
        vkDestroyBuffer(device, s->buffer, NULL);
        vkFreeMemory(device, s->memory, NULL);
    }
    burn_vk_close(s->vk);
    for (size_t i = 0; i < RECORDED; i++)
        free(s->recorded[i].list);
    free(s->list);
    free(s->sights);
    free(s->places);
    free(s->known);
    free(s->constants);
    free(s->backs);
    free(s);
}

static void device_read(Steps *s)
{
    burn_vk_handles(s->vk, &s->gpu);
    vkGetPhysicalDeviceMemoryProperties(s->gpu.physical, &s->kinds);
}

static Device *device_used(void) { return used != NULL ? used : &devices[0]; }

/* Opens the device, with its lock held. */
static int steps_open(Device *d)
{
    if (d->open != NULL) {
        d->open->code = BURN_OK;
        return BURN_OK;
    }
    Steps *s = calloc(1, sizeof *s);
    if (s == NULL)
        return BURN_ENOMEM;
    s->calls = steps_calls;
    s->device = d;
    int code = burn_vk_open(&s->vk, d == &devices[0] ? NULL : d->name);
    if (code != BURN_OK)
        failed(s, code, burn_vk_last_error(NULL), code);
    else
        device_read(s);
    if (s->code == BURN_OK && buffer_open(s) && sets_open(s) && commands_open(s))
        d->open = s;
    code = s->code;
    if (code != BURN_OK)
        steps_free(s);
    return code;
}

/* Which pipeline is the kernel's, made or not yet; NULL with the error. */
static const Known *known_of(Steps *s, const burn_gpu_kernel *kernel)
{
    const burn_gpu_kernel *other = NULL;
    uint32_t *near = &s->near[kernel->key % NEAR];
    for (size_t i = *near > 0 ? *near - 1 : 0; i < s->known_count; i++)
        if (s->known[i].key == kernel->key && s->known[i].words == kernel->spirv_words) {
            *near = (uint32_t)i + 1;
            return &s->known[i];
        }
    for (size_t i = 0; i + 1 < *near; i++)
        if (s->known[i].key == kernel->key && s->known[i].words == kernel->spirv_words)
            return &s->known[i];
    for (const burn_gpu_kernel *way = kernel->instead; way != NULL; way = way->instead)
        if (burn_vk_lacks(s->vk, way->spirv, way->spirv_words) == NULL)
            other = way;
    const bool instead = other != NULL;
    const char *lacks = instead ? NULL : burn_vk_lacks(s->vk, kernel->spirv, kernel->spirv_words);
    if (lacks != NULL) {
        if (failed(s, BURN_ENODEV, kernel->name, 0) == BURN_ENODEV)
            snprintf(error_text, sizeof error_text, "%s: the device has no %s", kernel->name, lacks);
        return NULL;
    }
    if (!grown(s, (void **)&s->known, s->known_count, &s->known_room, sizeof *s->known))
        return NULL;
    s->known[s->known_count] = (Known){ kernel->key, kernel->spirv_words, instead, instead ? other : kernel,
        VK_NULL_HANDLE, VK_SUCCESS };
    return &s->known[s->known_count++];
}

/* --- what generated code calls ----------------------------------------------------------------------------------- */

static void *bring(Steps *s, void *at, size_t bytes, bool in, bool back)
{
    if (at == NULL || (is_inside(s, at) && (uintptr_t)at % OPERAND_ALIGNMENT == 0))
        return at;
    void *copy = s->code == BURN_OK ? place_take(s, bytes, FOR_A_CALL) : NULL;
    if (copy != NULL && in && bytes > 0)
        memcpy(copy, at, bytes);
    if (copy == NULL || !back || !grown(s, (void **)&s->backs, s->back_count, &s->back_room, sizeof *s->backs))
        return copy;
    s->backs[s->back_count++] = (Back){ at, copy, bytes };
    return copy;
}

static void *steps_in(burn_gpu_call *calls, const void *at, size_t bytes)
{
    return bring((Steps *)calls, (void *)(uintptr_t)at, bytes, true, false);
}

static void *steps_out(burn_gpu_call *calls, void *at, size_t bytes)
{
    return bring((Steps *)calls, at, bytes, false, true);
}

static void *steps_both(burn_gpu_call *calls, void *at, size_t bytes)
{
    return bring((Steps *)calls, at, bytes, true, true);
}

static void *steps_room(burn_gpu_call *calls, void *at, size_t bytes)
{
    return bring((Steps *)calls, at, bytes, false, false);
}

static const unsigned char *steps_constants(burn_gpu_call *calls, const void *at, size_t bytes, uint64_t key)
{
    Steps *s = (Steps *)calls;
    for (size_t i = 0; i < s->constants_count; i++)
        if (s->constants[i].key == key && s->constants[i].bytes == bytes)
            return s->constants[i].at;
    if (at == NULL || s->code != BURN_OK ||
        !grown(s, (void **)&s->constants, s->constants_count, &s->constants_room, sizeof *s->constants))
        return NULL;
    unsigned char *copy = place_take(s, bytes, FOR_CONSTANTS);
    if (copy == NULL)
        return NULL;
    memcpy(copy, at, bytes);
    s->constants[s->constants_count++] = (Constants){ key, bytes, copy };
    return copy;
}

/* The window that a dispatch's operands of one binding begin in; false with the error. */
static bool window_of(Steps *s, const burn_gpu_kernel *kernel, int n, const Range *range,
    const burn_gpu_operand *operand, size_t binding, size_t *window)
{
    size_t first = SIZE_MAX, end = 0;
    for (int i = 0; i < n; i++) {
        if (operand[i].binding != binding)
            continue;
        first = range[i].from < first ? range[i].from : first;
        end = range[i].to > end ? range[i].to : end;
    }
    *window = first / s->stride;
    *window = end == 0 ? 0 : *window < s->window_count ? *window : s->window_count - 1;
    if (end <= *window * s->stride + s->range)
        return true;
    if (failed(s, BURN_ELIMIT, kernel->name, 0) == BURN_ELIMIT)
        snprintf(error_text, sizeof error_text, "%s reaches over %lu MiB of memory, and kernels see %lu here",
            kernel->name, (unsigned long)((end - first) >> 20), (unsigned long)(s->range >> 20));
    return false;
}

static VkDescriptorBufferInfo window_at(const Steps *s, size_t window)
{
    const size_t from = window * s->stride, left = s->bytes - from;
    return (VkDescriptorBufferInfo){ s->buffer, from, left < s->range ? left : s->range };
}

/* The set of these windows as binding 0, 1, ...; VK_NULL_HANDLE with the error. */
static VkDescriptorSet set_of(Steps *s, const size_t window[BINDINGS])
{
    VkDescriptorBufferInfo seen[BINDINGS];
    Sight new = { .set = VK_NULL_HANDLE };
    for (size_t i = 0; i < s->sight_count; i++)
        if (memcmp(s->sights[i].window, window, sizeof new.window) == 0)
            return s->sights[i].set;
    memcpy(new.window, window, sizeof new.window);
    for (int i = 0; i < BINDINGS; i++)
        seen[i] = window_at(s, window[i]);
    if (!grown(s, (void **)&s->sights, s->sight_count, &s->sight_room, sizeof *s->sights) ||
        !succeeds(s, set_make(s->gpu.device, s->descriptors, s->set_layout, seen, BINDINGS, &new.set),
            "vkAllocateDescriptorSets"))
        return VK_NULL_HANDLE;
    s->sights[s->sight_count++] = new;
    return new.set;
}

static void steps_dispatch(burn_gpu_call *calls, const burn_gpu_kernel *kernel, const uint32_t groups[3], int writes,
    int operands, const burn_gpu_operand *operand, int numbers, const uint32_t *number)
{
    Steps *s = (Steps *)calls;
    uint32_t push[PUSH_WORDS_MAX];
    Range range[PUSH_WORDS_MAX];
    if (s->code != BURN_OK || groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return;
    if (operands + numbers > PUSH_WORDS_MAX) {
        failed(s, BURN_EINVAL, kernel->name, operands + numbers);
        return;
    }
    for (int i = 0; i < operands; i++) {
        const void *at = operand[i].at;
        if (i >= writes && !is_inside(s, at))
            at = steps_in(calls, at, operand[i].bytes);
        if (at == NULL)
            return;
        range[i] = range_of(s, at, operand[i].bytes, i < writes);
    }
    size_t window[BINDINGS];
    for (size_t i = 0; i < BINDINGS; i++)
        if (!window_of(s, kernel, operands, range, operand, i, &window[i]))
            return;
    for (int i = 0; i < operands; i++) {
        const size_t from = window[operand[i].binding] * s->stride;
        push[i] = (uint32_t)((range[i].from - from) / operand[i].element);
    }
    for (int i = 0; i < numbers; i++)
        push[operands + i] = number[i];
    const Known *known = known_of(s, kernel);
    const VkDescriptorSet set = known != NULL ? set_of(s, window) : VK_NULL_HANDLE;
    if (set == VK_NULL_HANDLE)
        return;
    Command *c = command_add(s, COMMAND_KERNEL, operands, range);
    if (c == NULL)
        return;
    c->known = (size_t)(known - s->known);
    c->set = set;
    c->words = (uint32_t)(operands + numbers);
    memcpy(c->push, push, c->words * sizeof *push);
    memcpy(c->groups, known->instead ? known->of->groups : groups, sizeof c->groups);
    if (s->watcher != NULL && steps_wait(calls) == BURN_OK)
        times_tell(s, kernel->name);
    else if (s->count >= s->share && s->known_made == s->known_count)
        list_submit(s);
}

static void steps_copy(burn_gpu_call *calls, void *to, const void *from, size_t bytes)
{
    Steps *s = (Steps *)calls;
    const Range ranges[2] = { range_of(s, to, bytes, true), range_of(s, from, bytes, false) };
    Command *c = bytes == 0 || to == from ? NULL : command_add(s, COMMAND_COPY, 2, ranges);
    if (c == NULL)
        return;
    c->to = s->buffer;
    c->region = (VkBufferCopy){ ranges[1].from, ranges[0].from, bytes };
}

/* A command that writes these bytes; NULL: commands do not do that, and the host does, or there is an error. */
static Command *command_write(Steps *s, CommandKind kind, void *to, size_t bytes, size_t most)
{
    const Range range = range_of(s, to, bytes, true);
    Command *c = bytes == 0 || bytes % 4 || range.from % 4 || bytes > most ? NULL : command_add(s, kind, 1, &range);
    if (c == NULL)
        return NULL;
    c->to = s->buffer;
    c->region = (VkBufferCopy){ 0, range.from, bytes };
    return c;
}

static void steps_zero(burn_gpu_call *calls, void *to, size_t bytes)
{
    Steps *s = (Steps *)calls;
    if (bytes > 0 && command_write(s, COMMAND_ZERO, to, bytes, SIZE_MAX) == NULL && steps_wait(calls) == BURN_OK)
        memset(to, 0, bytes);
}

static void steps_put(burn_gpu_call *calls, void *to, const void *value, size_t bytes)
{
    Steps *s = (Steps *)calls;
    Command *c = command_write(s, COMMAND_PUT, to, bytes, sizeof c->push);
    if (c != NULL)
        memcpy(c->push, value, bytes);
    else if (steps_wait(calls) == BURN_OK)
        memcpy(to, value, bytes);
}

/* Two dispatches that have common counters have a barrier between them, like any that write the same bytes. */
static void *steps_counters(burn_gpu_call *calls, size_t words)
{
    Steps *s = (Steps *)calls;
    if (words > COUNTERS) {
        failed(s, BURN_ELIMIT, "too many counters", (int)(words >> 10));
        return NULL;
    }
    const size_t at = s->counters_next + words <= COUNTERS ? s->counters_next : 0;
    s->counters_next = at + words;
    return s->counters + at;
}

static int steps_end(burn_gpu_call *calls, int code)
{
    Steps *s = (Steps *)calls;
    const bool staged = back_record(s);
    const int own = steps_wait(calls);
    if (own != BURN_OK) { /* kernels may have stopped between counting and the end */
        vkDeviceWaitIdle(s->gpu.device);
        list_ended(s);
        memset(s->counters, 0, COUNTERS * sizeof *s->counters);
        recorded_forget(s);
    }
    if (own == BURN_OK)
        back_copy(s, staged);
    if (own == BURN_OK && s->known_kept != s->known_made) {
        burn_vk_pipelines_keep(s->vk);
        s->known_kept = s->known_made;
    }
    s->back_count = 0;
    list_clear(s); /* of which something is left after an error */
    for (size_t i = 0; i < s->place_count; i++)
        if (s->places[i].temporary)
            place_give(s, &s->places[i]);
    places_join(s);
    pthread_mutex_unlock(&s->device->lock);
    return own != BURN_OK ? own : code;
}

static const burn_gpu_call steps_calls = {
    .in = steps_in,
    .out = steps_out,
    .both = steps_both,
    .room = steps_room,
    .constants = steps_constants,
    .dispatch = steps_dispatch,
    .copy = steps_copy,
    .zero = steps_zero,
    .put = steps_put,
    .counters = steps_counters,
    .wait = steps_wait,
    .end = steps_end,
};

int burn_gpu_begin(burn_gpu_call **out)
{
    Device *d = device_used();
    *out = NULL;
    pthread_mutex_lock(&d->lock);
    const int code = steps_open(d);
    if (code != BURN_OK) {
        pthread_mutex_unlock(&d->lock);
        return code;
    }
    *out = &d->open->calls;
    return BURN_OK;
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

/* The device of that name, known from now on; NULL: there are too many, or the name is too long. */
static Device *device_named(const char *name)
{
    Device *found = name == NULL ? &devices[0] : NULL;
    pthread_mutex_lock(&devices_lock);
    for (size_t i = 1; i < device_count && found == NULL; i++)
        found = strcmp(devices[i].name, name) == 0 ? &devices[i] : NULL;
    if (found == NULL && device_count < DEVICES_MAX && strlen(name) < sizeof found->name &&
        pthread_mutex_init(&devices[device_count].lock, NULL) == 0) {
        found = &devices[device_count];
        strcpy(found->name, name);
        device_count++;
    }
    pthread_mutex_unlock(&devices_lock);
    return found;
}

int burn_gpu_use(const char *device)
{
    Device *d = device_named(device);
    if (d == NULL) {
        snprintf(error_text, sizeof error_text, "more than %d devices, or a name that is too long", DEVICES_MAX - 1);
        return BURN_ELIMIT;
    }
    pthread_mutex_lock(&d->lock);
    const int code = steps_open(d);
    pthread_mutex_unlock(&d->lock);
    used = code == BURN_OK ? d : used;
    return code;
}

static size_t devices_known(void)
{
    pthread_mutex_lock(&devices_lock);
    const size_t count = device_count;
    pthread_mutex_unlock(&devices_lock);
    return count;
}

/* The open device in whose memory that lies, with its lock held; NULL: it is the host's. */
static Device *device_of(const void *memory)
{
    const size_t count = devices_known();
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&devices[i].lock);
        if (devices[i].open != NULL && is_inside(devices[i].open, memory))
            return &devices[i];
        pthread_mutex_unlock(&devices[i].lock);
    }
    return NULL;
}

/* --- the caller's memory ----------------------------------------------------------------------------------------- */

void *burn_gpu_memory(size_t bytes)
{
    Device *d = device_used();
    unsigned char *memory = NULL;
    pthread_mutex_lock(&d->lock);
    if (steps_open(d) == BURN_OK)
        memory = place_take(d->open, bytes, FOR_THE_CALLER);
    if (memory != NULL)
        memset(memory, 0, bytes);
    pthread_mutex_unlock(&d->lock);
    return memory;
}

void burn_gpu_memory_free(void *memory)
{
    Device *d = device_of(memory);
    if (d == NULL)
        return;
    Steps *s = d->open;
    for (size_t i = 0; i < s->place_count; i++)
        if (s->map + s->places[i].at == (unsigned char *)memory)
            place_give(s, &s->places[i]);
    places_join(s);
    pthread_mutex_unlock(&d->lock);
}

/* What a device has comes to the host as a call's results do; the host writes a device's memory itself. */
int burn_gpu_copy(void *to, const void *from, size_t bytes)
{
    Device *d = device_of(from);
    if (d == NULL) {
        memcpy(to, from, bytes);
        return BURN_OK;
    }
    Steps *s = d->open;
    s->code = BURN_OK;
    if (grown(s, (void **)&s->backs, s->back_count, &s->back_room, sizeof *s->backs))
        s->backs[s->back_count++] = (Back){ to, from, bytes };
    return steps_end(&s->calls, s->code);
}

int burn_gpu_cache(const char *folder)
{
    Device *d = device_used();
    pthread_mutex_lock(&d->lock);
    int code = steps_open(d);
    if (code == BURN_OK && (code = burn_vk_cache(d->open->vk, folder)) != BURN_OK)
        snprintf(error_text, sizeof error_text, "%s", burn_vk_last_error(d->open->vk));
    if (code == BURN_OK)
        d->open->known_kept = 0;
    pthread_mutex_unlock(&d->lock);
    return code;
}

void burn_gpu_usage(size_t *now, size_t *most)
{
    Device *d = device_used();
    pthread_mutex_lock(&d->lock);
    *now = d->open != NULL ? d->open->used : 0;
    *most = d->open != NULL ? d->open->used_most : 0;
    pthread_mutex_unlock(&d->lock);
}

int burn_gpu_watch(burn_gpu_watcher *watcher, void *context)
{
    Device *d = device_used();
    pthread_mutex_lock(&d->lock);
    int code = steps_open(d);
    if (code == BURN_OK)
        code = times_open(d->open, watcher, context);
    pthread_mutex_unlock(&d->lock);
    return code;
}

const char *burn_gpu_error(void) { return error_text; }

void burn_gpu_close(void)
{
    Device *d = device_used();
    pthread_mutex_lock(&d->lock);
    if (d->open != NULL)
        steps_free(d->open);
    d->open = NULL;
    pthread_mutex_unlock(&d->lock);
}
