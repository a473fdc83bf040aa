// SPDX-License-Identifier: MIT OR Apache-2.0
// The functions of posix.h, and the commands that would start programs: they say what they are.
#include "posix.h"

#include "command/command.h"
#include "command/profile.h"
#include "learn/record.h"
#include "learn/source.h"

#include <string.h>
#include <sys/stat.h>

static int none(void) {
    errno = ENOSYS;
    return -1;
}

// Paths are those of the host, whose root node opens for us; so is the folder that we begin in.
__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("PWD");
    if (folder) (void)!chdir(folder);
}

// There is nothing to be told by a signal.
int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    (void)number, (void)action, (void)old;
    return none();
}
int sigemptyset(sigset_t *set) { return *set = 0; }
int sigfillset(sigset_t *set) { return *set = 0; }
int setitimer(int which, const struct itimerval *value, struct itimerval *old) {
    (void)which, (void)value, (void)old;
    return none();
}

pid_t fork(void) { return none(); }
pid_t waitpid(pid_t pid, int *status, int options) {
    (void)pid, (void)status, (void)options;
    return none();
}
int execvp(const char *file, char *const argv[]) {
    (void)file, (void)argv;
    return none();
}
int execl(const char *path, const char *arg, ...) {
    (void)path, (void)arg;
    return none();
}
int kill(pid_t pid, int number) {
    (void)pid, (void)number;
    return none();
}
int pipe(int ends[2]) {
    (void)ends;
    return none();
}
int dup(int file) {
    (void)file;
    return none();
}
int dup2(int from, int to) {
    (void)from, (void)to;
    return none();
}
// The six X at its end become a number that is not taken.
char *mkdtemp(char *pattern) {
    char *end = pattern + strlen(pattern) - 6;
    for (int i = 0; i < 1000000; i++) {
        snprintf(end, 7, "%06d", i);
        if (!mkdir(pattern, 0700)) return pattern;
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}
int mkstemp(char *pattern) {
    (void)pattern;
    return none();
}
mode_t umask(mode_t mask) { return mask & 022; }
int chmod(const char *path, mode_t mode) {
    (void)path, (void)mode;
    return 0;
}
void *dlopen(const char *file, int mode) {
    (void)file, (void)mode;
    return NULL;
}
void *dlsym(void *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}
int dlclose(void *library) {
    (void)library;
    return none();
}
char *dlerror(void) {
    static char text[] = "WebAssembly loads no libraries";
    return text;
}

// What the others are left without.
void build_free(Built *b) { (void)b; }
const Profile *profile_take(Arena *a, CommandOptions *o, BuildCache *marked) {
    (void)a, (void)o, (void)marked;
    diag_error_as(EXIT_USAGE, NULL, "a profile runs the model, which burncc as WebAssembly cannot");
    return NULL;
}
int burn_source_kind(int i, burn_source_help *help) {
    (void)i, (void)help;
    return 0;
}
const char *burn_record_claims(const void *data, size_t bytes) {
    (void)data, (void)bytes;
    return NULL;
}
int burn_record_read(const void *data, size_t bytes, burn_record **record, burn_said *said) {
    (void)data, (void)bytes, (void)record, (void)said;
    return BURN_EINVAL;
}
void burn_record_close(burn_record *record) { (void)record; }

#define ELSEWHERE(name) \
    int command_##name(Arena *a, CommandOptions *o) { \
        (void)a, (void)o; \
        diag_error_as(EXIT_USAGE, NULL, "%s runs programs, which burncc as WebAssembly cannot: a native burncc can", \
            #name); \
        return diag_status(); \
    }
ELSEWHERE(verify)
ELSEWHERE(run)
ELSEWHERE(bench)
ELSEWHERE(tune)
ELSEWHERE(fit)
ELSEWHERE(predict)
ELSEWHERE(evaluate)
ELSEWHERE(report)
