/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How watchers write: numbers, times, rows of CSV, names of files; and what there is to write on. */
#define _DEFAULT_SOURCE
#include "watch_own.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *watch_split(burn_split split)
{
    return split == BURN_VALIDATION ? "valid" : "train";
}

WatchText watch_number(double v)
{
    WatchText to;
    double size = fabs(v);
    if (isnan(v) || isinf(v)) snprintf(to.text, sizeof to.text, "%s", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    else if (size < 0.01 || size >= 1e7) snprintf(to.text, sizeof to.text, "%.3g", v);
    else snprintf(to.text, sizeof to.text, "%.*f", size < 10 ? 4 : size < 100 ? 2 : size < 1000 ? 1 : 0, v);
    return to;
}

WatchText watch_time(double seconds)
{
    WatchText to;
    if (!(seconds >= 0 && seconds < 1e9)) return (WatchText){ "?" };
    long s = lround(seconds);
    if (s < 3600) snprintf(to.text, sizeof to.text, "%ld:%02ld", s / 60, s % 60);
    else snprintf(to.text, sizeof to.text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return to;
}

double watch_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int watch_terminal(FILE *to, int *rows)
{
    struct winsize size;
    const char *term = getenv("TERM");
    *rows = 0;
    if (!isatty(fileno(to)) || !term || !*term || !strcmp(term, "dumb")) return 0;
    if (ioctl(fileno(to), TIOCGWINSZ, &size) || !size.ws_col) size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
    *rows = size.ws_row;
    return size.ws_col;
}

int watch_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return !no || !*no;
}

int watch_cut(char *text, int characters)
{
    int n = 0;
    for (; *text; text++) {
        int is_first = ((unsigned char)*text & 0xc0) != 0x80;
        if (is_first && n == characters) break;
        n += is_first;
    }
    *text = 0;
    return n;
}

char *watch_format(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int bytes = vsnprintf(NULL, 0, format, args);
    char *to = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    if (to) vsnprintf(to, (size_t)bytes + 1, format, again);
    va_end(again);
    va_end(args);
    return to;
}

char *watch_copy(const char *text)
{
    return watch_format("%s", text ? text : "");
}

char *watch_log_path(const char *folder, burn_split split, int64_t epoch, const char *name)
{
    char *file = watch_copy(name), *path = NULL;
    if (!file) return NULL;
    for (char *c = file; *c; c++)
        if (*c == '/' || *c == ' ') *c = '_';
    path = watch_format("%s/%s/epoch-%lld/%s.log", folder, watch_split(split), (long long)epoch, file);
    free(file);
    return path;
}

int watch_make_folder(const char *path)
{
    char *at = watch_copy(path);
    int ok = at != NULL;
    for (char *c = at; ok && *c; c++) {
        if (c[1] != '/' && c[1]) continue;
        char was = c[1];
        c[1] = 0;
        ok = !mkdir(at, 0777) || errno == EEXIST;
        c[1] = was;
    }
    free(at);
    return ok;
}

void watch_csv_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, to);
        return;
    }
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"') putc('"', to);
        putc(*text == '\n' ? ' ' : *text, to);
    }
    putc('"', to);
}

char *watch_csv_field(char **line)
{
    char *from = *line, *to = *line, *field = *line;
    int quoted = *from == '"';
    for (from += quoted; *from; from++) {
        if (quoted && *from == '"' && *++from != '"') quoted = 0;
        if (!quoted && (*from == ',' || !*from)) break;
        *to++ = *from;
    }
    *line = from + (*from != 0);
    *to = 0;
    return field;
}

void watch_say(const burn_watcher *to, burn_level level, const char *text)
{
    if (to && to->say) to->say(to->own, level, text);
}
