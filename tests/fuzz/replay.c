// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs the fuzz target once over files: those that crashed it stay mended. No fuzzing engine is needed.
//
// In: paths. Out: a TAP line a file. Each runs in a child process with a time limit; outside the sanitizers, whose
// own memory is not small, its memory is held to the target's bound too.
#define _DEFAULT_SOURCE
#include "fuzz.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 20 };

static long peak_kib(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static int child(const char *path) {
    File f;
    if (!file_map(&f, path)) return 1;
    alarm(SECONDS);
    long before = peak_kib();
    LLVMFuzzerTestOneInput(f.data, f.size);
    long more = peak_kib() - before;
#if defined(__SANITIZE_ADDRESS__)
    more = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    more = 0;
#endif
#endif
    if (more > (64 << 10) + (long)(2 * f.size >> 10)) fatal(EXIT_MEMORY, "%s takes %ld KiB", path, more);
    file_unmap(&f);
    return 0;
}

int main(int argc, char **argv) {
    LLVMFuzzerInitialize(&argc, &argv);
    printf("1..%d\n", argc - 1);
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        fflush(NULL);
        pid_t pid = fork();
        if (!pid) _exit(child(argv[i]));
        int status = 1;
        if (pid > 0) waitpid(pid, &status, 0);
        if (status) bad++;
        if (WIFSIGNALED(status))
            printf(
                "not ok %d %s: %s\n", i, name, WTERMSIG(status) == SIGALRM ? "no end" : strsignal(WTERMSIG(status)));
        else printf("%s %d %s\n", status ? "not ok" : "ok", i, name);
    }
    return bad > 0;
}
