// SPDX-License-Identifier: MIT OR Apache-2.0
// Other programs, and folders for what they make: both end with this process, or before.
//
// In: words of a command. Out: its exit status. A temporary folder goes when it is given back, when the process ends,
// and on signals (the handler starts `rm -rf`: all it calls is async-signal-safe).
#define _DEFAULT_SOURCE
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// ---------------------------------------------------------------- temporary folders

enum { MAX_FOLDERS = 64, PATH_BYTES = 512 };
static char folders[MAX_FOLDERS][PATH_BYTES];           // "" where free; read by the signal handler
static pid_t owner;                                     // children inherit the handler and must not remove anything

static void remove_tree(const char *path) {
    DIR *d = opendir(path);
    char file[PATH_BYTES + 256];
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (unlink(file)) remove_tree(file);
    }
    if (d) closedir(d);
    rmdir(path);
}

bool folder_holds(const char *path) {
    for (int i = 0; i < MAX_FOLDERS; i++) {
        size_t n = strlen(folders[i]);
        if (n && !strncmp(path, folders[i], n) && path[n] == '/') return true;
    }
    return false;
}

void folder_remove(const char *path) {
    for (int i = 0; i < MAX_FOLDERS && path; i++) {
        if (path != folders[i]) continue;
        remove_tree(path);
        *folders[i] = 0;
    }
}

static void remove_all(void) {
    for (int i = 0; i < MAX_FOLDERS && getpid() == owner; i++)
        if (*folders[i]) folder_remove(folders[i]);
}

static void on_signal(int number) {
    for (int i = 0; i < MAX_FOLDERS && getpid() == owner; i++) {
        if (!*folders[i]) continue;
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/rm", "rm", "-rf", folders[i], (char *)NULL);
            _exit(127);
        }
        while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) { }
    }
    raise(number);                                      // SA_RESETHAND: the default action now
}

static void watch_signals(void) {
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGABRT, SIGSEGV, SIGBUS, SIGFPE };
    struct sigaction action = { .sa_flags = (int)SA_RESETHAND };
    action.sa_handler = on_signal;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct sigaction old;
        if (!sigaction(numbers[i], NULL, &old) && old.sa_handler == SIG_DFL) sigaction(numbers[i], &action, NULL);
    }
}

// Makes a folder by mkdtemp's template and writes it down, with no signal between: else it would be left behind, or a
// part of its path removed.
static bool make_listed(char *path, char folder[PATH_BYTES]) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const bool made = mkdtemp(path) != NULL;
    const int error = errno;
    if (made) memcpy(folder, path, strlen(path) + 1);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return made;
}

const char *folder_make(void) {
    if (!owner) {
        owner = getpid();
        atexit(remove_all);
        watch_signals();
    }
    const char *base = getenv("TMPDIR");
    for (int i = 0; i < MAX_FOLDERS; i++) {
        if (*folders[i]) continue;
        char path[PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s/burncc-XXXXXX", base && *base ? base : "/tmp");
        if (n >= PATH_BYTES || !make_listed(path, folders[i])) {
            diag_error_as(EXIT_IO, NULL, "cannot make a temporary folder in %s: %s", base && *base ? base : "/tmp",
                strerror(n >= PATH_BYTES ? ENAMETOOLONG : errno));
            return NULL;
        }
        return folders[i];
    }
    diag_error_as(EXIT_LIMIT, NULL, "more than %d temporary folders at once", MAX_FOLDERS);
    return NULL;
}

// ---------------------------------------------------------------- commands

void argv_add(Arena *a, Argv *v, const char *text) {
    while (text && *text) {
        size_t n = strcspn(text, " \t\n");
        if (n) VEC_PUSH(a, *v, arena_strndup(a, text, n));
        text += n + strspn(text + n, " \t\n");
    }
}

char **argv_end(Arena *a, Argv *v) {
    char **words = NEW_ARRAY(a, char *, v->n + 1);
    for (int i = 0; i < v->n; i++) words[i] = arena_strdup(a, v->at[i]);
    return words;
}

static int run(Arena *a, Argv *v, bool silent) {
    char **words = argv_end(a, v);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const int nowhere = silent ? open("/dev/null", O_WRONLY) : -1;
        if (silent) dup2(nowhere, STDERR_FILENO);
        dup2(STDERR_FILENO, STDOUT_FILENO);             // standard output is for results
        execvp(words[0], words);
        _exit(PROCESS_NONE);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) { }
    return child < 0 ? PROCESS_NONE : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_run(Arena *a, Argv *v) { return run(a, v, false); }

int process_try(Arena *a, Argv *v) { return run(a, v, true); }
