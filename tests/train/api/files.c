// SPDX-License-Identifier: MIT OR Apache-2.0
// Saving and loading: round trips, every truncation and every changed byte, and on Linux a process that is killed at
// each of its system calls while it saves. Built by api.py over a model m with adam. Argument: a folder.
#define _DEFAULT_SOURCE 1
#include "m.h"
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static m_params params, got;
static m_state state, got_state;
static char path[4096], other[4096], data[1 << 16];

static void number(float v)
{
    for (size_t i = 0; i < sizeof params / 4; i++) ((float *)(void *)&params)[i] = v + (float)i;
    for (size_t i = 0; i < sizeof state / 4; i++) ((float *)(void *)&state)[i] = v - (float)i;
}

static size_t read_all(const char *from)
{
    FILE *f = fopen(from, "rb");
    CHECK(f);
    size_t n = fread(data, 1, sizeof data, f);
    CHECK(n < sizeof data && !fclose(f));
    return n;
}

static void write_all(const char *to, size_t n)
{
    FILE *f = fopen(to, "wb");
    CHECK(f && fwrite(data, 1, n, f) == n && !fclose(f));
}

/* 0: loaded, and what was saved; else the code, and nothing has changed */
static int load(const char *from)
{
    int64_t step = -7;
    memset(&got, 1, sizeof got);
    memset(&got_state, 1, sizeof got_state);
    int code = m_checkpoint_load(&got, &got_state, &step, from);
    const unsigned char *at = (const unsigned char *)&got, *of = (const unsigned char *)&got_state;
    if (!code)
        CHECK(!memcmp(&got, &params, sizeof got) && !memcmp(&got_state, &state, sizeof state) && step == 1234567890123);
    for (size_t i = 0; code && i < sizeof got; i++) CHECK(at[i] == 1);
    for (size_t i = 0; code && i < sizeof got_state; i++) CHECK(of[i] == 1);
    CHECK(!code || step == -7);
    return code;
}

static int save(const char *to) { return m_checkpoint_save(&params, &state, 1234567890123, to); }

static void damaged(void)
{
    CHECK(!save(path) && !load(path));
    size_t n = read_all(path);
    for (size_t i = 0; i < n; i++) {
        write_all(other, i);
        CHECK(load(other) == BURN_EFORMAT);
    }
    for (size_t i = 0; i < n; i++) {
        data[i] = (char)(data[i] ^ 4);
        write_all(other, n);
        if (load(other) != BURN_EFORMAT) CHECK(i >= 8 && i < 8 + 46); /* the sum's own entry: a file without one */
        data[i] = (char)(data[i] ^ 4);
    }
    data[n] = 0;
    write_all(other, n + 4);
    CHECK(load(other) == BURN_EFORMAT);
}

static void refused(void)
{
    int64_t step;
    CHECK(!m_params_save(&params, other) && load(other) == BURN_EFORMAT);
    CHECK(m_state_load(&state, other) == BURN_EFORMAT && !m_params_load(&got, other));
    CHECK(!m_state_save(&state, other) && m_params_load(&params, other) == BURN_EFORMAT);
    CHECK(!m_state_load(&got_state, other) && !memcmp(&got_state, &state, sizeof state));
    CHECK(!m_params_load(&got, path) && !memcmp(&got, &params, sizeof got)); /* a checkpoint has them too */
    CHECK(m_checkpoint_save(NULL, &state, 1, path) == BURN_EINVAL && m_params_save(&params, NULL) == BURN_EINVAL);
    CHECK(m_checkpoint_save(&params, NULL, 1, path) == BURN_EINVAL && m_params_load(NULL, path) == BURN_EINVAL);
    CHECK(m_checkpoint_load(&got, &got_state, NULL, path) == BURN_EINVAL);
    CHECK(m_checkpoint_load(NULL, &got_state, &step, path) == BURN_EINVAL);
    CHECK(m_params_save(&params, "/nowhere/at/all") == BURN_EIO && m_params_load(&got, "/nowhere") == BURN_EIO);
    CHECK(!load(path));
}

#ifdef __linux__
/* Saves in a process that ends at its n-th stop: 1, or 0 when it has come to its end before; -1: no tracing here. */
static int killed_at(int n)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(9);
        raise(SIGSTOP);
        _exit(save(path) ? 8 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) return -1;
    for (int i = 0; i < n; i++) {
        CHECK(!ptrace(PTRACE_SYSCALL, child, NULL, NULL) && waitpid(child, &status, 0) == child);
        if (WIFEXITED(status)) {
            CHECK(WEXITSTATUS(status) == 0);
            return 0;
        }
    }
    CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    return 1;
}

static void killed(void)
{
    int old = 0, new = 0, went;
    for (int n = 1; n < 10000; n++) {
        number(1);
        CHECK(!save(path));
        number(2);
        went = killed_at(n);
        if (went < 0) {
            printf("SKIP no tracing of processes\n");
            return;
        }
        number(1);
        size_t size = read_all(path);
        int is_old = !m_params_load(&got, path) && !memcmp(&got, &params, sizeof got);
        if (!is_old) number(2);
        CHECK(size && !load(path));
        old += is_old;
        new += !is_old;
        if (!went) break;
    }
    CHECK(old > 10 && new > 1);
}
#endif

int main(int argc, char **argv)
{
    CHECK(argc == 2 && strlen(argv[1]) < 4000);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", argv[1]);
    snprintf(other, sizeof other, "%s/other.safetensors", argv[1]);
    number(0.5f);
    damaged();
    refused();
#ifdef __linux__
    killed();
#endif
    return 0;
}
