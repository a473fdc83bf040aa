// SPDX-License-Identifier: MIT OR Apache-2.0
// What the compiler asks of POSIX and WASI has not: included before every file of the build that scripts/npm makes, so
// that no source file knows of it. Each function fails as POSIX says it may, with ENOSYS; there are no other programs
// here, no signals, no libraries to load.
#ifndef BURNCC_WASI_POSIX_H
#define BURNCC_WASI_POSIX_H

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

struct sigaction { void (*sa_handler)(int); sigset_t sa_mask; int sa_flags; };
struct itimerval { struct timeval it_interval, it_value; };
enum { SA_RESTART = 1, SA_RESETHAND = 2, ITIMER_REAL = 0, RTLD_NOW = 1, RTLD_LOCAL = 2, RTLD_LAZY = 4 };
#define WIFEXITED(status) ((void)(status), 1)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((void)(status), 0)
#define WTERMSIG(status) ((void)(status), 0)

int sigaction(int number, const struct sigaction *action, struct sigaction *old);
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int setitimer(int which, const struct itimerval *value, struct itimerval *old);
int dup(int file);
int pipe(int ends[2]);
int kill(pid_t pid, int number);
pid_t fork(void);
pid_t waitpid(pid_t pid, int *status, int options);
int execvp(const char *file, char *const argv[]);
int execl(const char *path, const char *arg, ...);
int dup2(int from, int to);
char *mkdtemp(char *pattern);
int mkstemp(char *pattern);
mode_t umask(mode_t mask);
int chmod(const char *path, mode_t mode);
void *dlopen(const char *file, int mode);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
char *dlerror(void);

#endif
