/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics of the machine while it learns: items a second since the start; this process's processor time over wall
 * time (100 a core) since the start; its resident memory now; the hottest sensor now; a GPU's use, memory and
 * temperature now, by NVIDIA's management library where it is, else as Linux shows AMD's. What a machine does not
 * tell is NaN. */
#define _GNU_SOURCE
#include "metric_family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __linux__
#include <dlfcn.h>
#include <unistd.h>
#endif

static double seconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) ? NAN : (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- speed, cpu */
typedef struct Since { double wall, cpu, items, wall_now, cpu_now; } Since;

void *metric_since_begin(const double *parameters)
{
    (void)parameters;
    Since *s = calloc(1, sizeof *s);
    if (s) {
        s->wall = s->wall_now = seconds(CLOCK_MONOTONIC);
        s->cpu = s->cpu_now = seconds(CLOCK_PROCESS_CPUTIME_ID);
    }
    return s;
}

int metric_since_add(void *state, const burn_observation *seen)
{
    Since *s = state;
    s->items += (double)seen->items;
    s->wall_now = seconds(CLOCK_MONOTONIC);
    s->cpu_now = seconds(CLOCK_PROCESS_CPUTIME_ID);
    return BURN_OK;
}

double metric_since_speed(void *state)
{
    Since *s = state;
    return s->wall_now > s->wall ? s->items / (s->wall_now - s->wall) : NAN;
}

double metric_since_cpu(void *state)
{
    Since *s = state;
    return s->wall_now > s->wall ? 100 * (s->cpu_now - s->cpu) / (s->wall_now - s->wall) : NAN;
}

/* ---- what is now: Mean's sum, weight 1 once it is known */
typedef struct Now { Mean mean; int device; } Now;

void *metric_now_begin(const double *parameters)
{
    Now *n = calloc(1, sizeof *n);
    if (n) n->device = (int)parameters[0];
    return n;
}

static int now_is(void *state, double value)
{
    Now *n = state;
    if (!isnan(value)) n->mean = (Mean){ value, 1 };
    return BURN_OK;
}

/* The first number in a file, or NaN. */
static double number_in(const char *path)
{
    FILE *f = fopen(path, "r");
    double number = NAN;
    if (!f) return NAN;
    if (fscanf(f, "%lf", &number) != 1) number = NAN;
    fclose(f);
    return number;
}

static double resident(void)
{
    double pages = NAN;
#ifdef __linux__
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return NAN;
    if (fscanf(f, "%*s %lf", &pages) != 1) pages = NAN;
    fclose(f);
    pages *= (double)sysconf(_SC_PAGESIZE) / (1 << 20);
#endif
    return pages;
}

/* Of thermal zones and of the sensors on the mainboard, in thousandths of a degree. */
static double hottest(void)
{
    double most = NAN;
    char path[96];
    for (int i = 0; i < 32; i++) {
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", i);
        most = fmax(most, number_in(path));
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/temp1_input", i);
        most = fmax(most, number_in(path));
    }
    return most / 1000;
}

int metric_memory_add(void *state, const burn_observation *seen)
{
    (void)seen;
    return now_is(state, resident());
}

int metric_heat_add(void *state, const burn_observation *seen)
{
    (void)seen;
    return now_is(state, hottest());
}

/* ---- gpu */
typedef enum Asked { USE, MEMORY, TEMPERATURE } Asked;

#ifdef __linux__
/* NVML's calls (its API reference, "Device Queries"): 0 is success; temperature sensor 0 is the chip's. */
typedef struct Nvml {
    void *library;
    int (*init)(void);
    int (*device)(unsigned, void **);
    int (*use)(void *, unsigned[2]);                          /* % of the chip, of its memory */
    int (*memory)(void *, unsigned long long[3]);             /* bytes: all, free, used */
    int (*temperature)(void *, int, unsigned *);
    int (*shutdown)(void);
} Nvml;

static int nvml_open(Nvml *n)
{
    const char *const names[] = { "nvmlInit_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUtilizationRates",
                                  "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTemperature", "nvmlShutdown" };
    void *found[6];
    n->library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!n->library) return 0;
    int all = 1;
    for (int i = 0; i < 6; i++) all &= (found[i] = dlsym(n->library, names[i])) != NULL;
    memcpy(&n->init, found, sizeof found);
    if (all && !n->init()) return 1;
    dlclose(n->library);
    return 0;
}

static double nvidia(int device, Asked asked)
{
    Nvml n;
    void *handle;
    unsigned use[2], degrees;
    unsigned long long memory[3];
    double value = NAN;
    if (!nvml_open(&n)) return NAN;
    if (!n.device((unsigned)device, &handle)) {
        if (asked == USE && !n.use(handle, use)) value = use[0];
        if (asked == MEMORY && !n.memory(handle, memory)) value = (double)memory[2] / (1 << 20);
        if (asked == TEMPERATURE && !n.temperature(handle, 0, &degrees)) value = degrees;
    }
    n.shutdown();
    dlclose(n.library);
    return value;
}

static double amd(int device, Asked asked)
{
    static const char *const files[] = { "gpu_busy_percent", "mem_info_vram_used", "hwmon/hwmon%d/temp1_input" };
    static const double units[] = { 1, 1 << 20, 1000 };
    char path[128], file[64];
    double value = NAN;
    for (int i = 0; i < 32 && isnan(value); i++) {            /* the sensor's number is the system's */
        snprintf(file, sizeof file, files[asked], i);
        snprintf(path, sizeof path, "/sys/class/drm/card%d/device/%s", device, file);
        value = number_in(path);
        if (asked != TEMPERATURE) break;
    }
    return value / units[asked];
}
#endif

static double gpu(int device, Asked asked)
{
    double value = NAN;
#ifdef __linux__
    value = nvidia(device, asked);
    if (isnan(value)) value = amd(device, asked);
#else
    (void)device;
    (void)asked;
#endif
    return value;
}

int metric_gpu_use_add(void *state, const burn_observation *seen)
{
    (void)seen;
    return now_is(state, gpu(((Now *)state)->device, USE));
}

int metric_gpu_ram_add(void *state, const burn_observation *seen)
{
    (void)seen;
    return now_is(state, gpu(((Now *)state)->device, MEMORY));
}

int metric_gpu_heat_add(void *state, const burn_observation *seen)
{
    (void)seen;
    return now_is(state, gpu(((Now *)state)->device, TEMPERATURE));
}
