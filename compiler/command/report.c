// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc report: several runs of `burncc fit` on one page. In: folders of artifacts, or the report.html of such. Out:
// the page -o, report.html here without.
#define _POSIX_C_SOURCE 200809L
#include "command.h"

#include "runtime/learn/watchers.h"

#include <sys/stat.h>

int command_report(Arena *a, CommandOptions *c) {
    const char **reports = NEW_ARRAY(a, const char *, c->data.n);
    for (int i = 0; i < c->data.n; i++) {
        struct stat is;
        const char *path = c->data.at[i];
        bool folder = !stat(path, &is) && S_ISDIR(is.st_mode);
        reports[i] = folder ? arena_printf(a, "%s/report.html", path) : path;
    }
    burn_said said = { "" };
    const char *page = c->compile.output ? c->compile.output : "report.html";
    int error = burn_report_join(c->data.n, reports, page, &said);
    if (error == BURN_EFORMAT) diag_error(NULL, "%s", said.text);
    else if (error) diag_error_as(EXIT_IO, NULL, "%s", said.text);
    else diag_note(NULL, "%s has the runs of %d reports", page, c->data.n);
    return diag_status();
}
