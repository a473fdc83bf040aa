// SPDX-License-Identifier: MIT OR Apache-2.0
// --check: the only user of libclang. In: a generated file. Out: its diagnostics, as ours.
//
// The file is parsed as C99 for the machine it is made for, and its header as C++, both with
// -Wall -Wextra -Wconversion -Wshadow -pedantic. Over each kernel stands a comment with the nodes it comes from, so a
// diagnostic is reported with the nearest comment above it.
//
// libclang and what it brings are loaded when they are wanted: linked, they would cost every start of burncc 50 MB
// and 15 ms.
#include "check.h"
#include "config.h"

#include <string.h>

#if HAVE_LIBCLANG
#include <clang-c/Index.h>
#include <dlfcn.h>

// Its functions, as <clang-c/Index.h> declares them.
#define CLANG_CALLS(X) \
    X(const char *, getCString, (CXString)) \
    X(void, disposeString, (CXString)) \
    X(enum CXDiagnosticSeverity, getDiagnosticSeverity, (CXDiagnostic)) \
    X(CXSourceLocation, getDiagnosticLocation, (CXDiagnostic)) \
    X(void, getSpellingLocation, (CXSourceLocation, CXFile *, unsigned *, unsigned *, unsigned *)) \
    X(CXString, getFileName, (CXFile)) \
    X(CXString, getDiagnosticOption, (CXDiagnostic, CXString *)) \
    X(CXString, getDiagnosticSpelling, (CXDiagnostic)) \
    X(CXIndex, createIndex, (int, int)) \
    X(enum CXErrorCode, parseTranslationUnit2, \
        (CXIndex, const char *, const char *const *, int, struct CXUnsavedFile *, unsigned, unsigned, \
            CXTranslationUnit *)) \
    X(unsigned, getNumDiagnostics, (CXTranslationUnit)) \
    X(CXDiagnostic, getDiagnostic, (CXTranslationUnit, unsigned)) \
    X(void, disposeDiagnostic, (CXDiagnostic)) \
    X(void, disposeTranslationUnit, (CXTranslationUnit)) \
    X(void, disposeIndex, (CXIndex))

#define FIELD(type, name, args) type (*name) args;
#define SAME_TYPE(type, name, args) \
    _Static_assert( \
        _Generic(&clang_##name, type (*) args: 1, default: 0), "clang_" #name " is declared otherwise");
#define LOAD(type, name, args) \
    if (!(symbol = dlsym(library, "clang_" #name))) return no_library(dlerror()); \
    memcpy(&clang.name, &symbol, sizeof symbol); /* POSIX: as large as a pointer to a function */
static struct { CLANG_CALLS(FIELD) } clang;             // filled by the first --check
CLANG_CALLS(SAME_TYPE)

static bool no_library(const char *why) {
    diag_error_as(EXIT_IO, NULL, "--check: cannot load libclang: %s", why ? why : "a function is missing");
    return false;
}

// Where it was found by the build, else the linker's own folders.
static bool open_library(void) {
    static const char *const files[] = { LIBCLANG_FOLDER "/libclang.so.1", LIBCLANG_FOLDER "/libclang.so",
        "libclang.so.1", "libclang.so" };
    void *library = NULL, *symbol;
    if (clang.getCString) return true;
    for (size_t i = 0; i < COUNT(files) && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return no_library(dlerror());
    CLANG_CALLS(LOAD)
    return true;
}

const char *check_version(void) { return LIBCLANG_VERSION ", loaded by --check"; }

static const char *take(Arena *a, CXString s) {
    const char *text = clang.getCString(s), *copy = arena_strdup(a, text ? text : "");
    clang.disposeString(s);
    return copy;
}

// The comment at column 0 that is nearest above the line: its first line's text, "" if there is none.
static const char *comment_above(Arena *a, const File *f, unsigned line) {
    const char *at = (const char *)f->data, *end = at + f->size, *found = NULL;
    size_t length = 0;
    for (unsigned i = 1; at < end && i <= line; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (stop - at > 3 && !strncmp(at, "/* ", 3)) {
            found = at + 3;
            length = (size_t)(stop - at) - 3;
        }
        at = stop + 1;
    }
    if (!found) return "";
    if (length >= 3 && !strncmp(found + length - 3, " */", 3)) length -= 3;
    return arena_strndup(a, found, length);
}

static bool report(Arena *a, CXDiagnostic d, const File *source, const char *path) {
    enum CXDiagnosticSeverity severity = clang.getDiagnosticSeverity(d);
    if (severity < CXDiagnostic_Warning) return true;
    unsigned line = 0, column = 0;
    CXFile file;
    clang.getSpellingLocation(clang.getDiagnosticLocation(d), &file, &line, &column, NULL);
    const char *name = file ? take(a, clang.getFileName(file)) : path;
    const char *comment = strcmp(name, path) == 0 ? comment_above(a, source, line) : "";
    const char *option = take(a, clang.getDiagnosticOption(d, NULL));
    Loc loc = {
        .file = arena_printf(a, "%s:%u:%u", name, line, column), .node = -1, .name = *comment ? comment : NULL
    };
    diag_error(
        &loc, "%s%s%s%s", take(a, clang.getDiagnosticSpelling(d)), *option ? " [" : "", option, *option ? "]" : "");
    return false;
}

static bool parse(Arena *a, const char *path, const char *const *flags, int n) {
    File source;
    if (!file_map(&source, path)) return false;
    CXIndex index = clang.createIndex(0, 0);
    CXTranslationUnit unit = NULL;
    bool ok = true;
    enum CXErrorCode code = clang.parseTranslationUnit2(index, path, flags, n, NULL, 0, CXTranslationUnit_None, &unit);
    if (code != CXError_Success) {
        Loc loc = { .file = path, .node = -1 };
        diag_error(&loc, "libclang cannot parse it (error %d)", (int)code);
        ok = false;
    } else {
        unsigned count = clang.getNumDiagnostics(unit);
        for (unsigned i = 0; i < count; i++) {
            CXDiagnostic d = clang.getDiagnostic(unit, i);
            ok = report(a, d, &source, path) && ok;
            clang.disposeDiagnostic(d);
        }
        clang.disposeTranslationUnit(unit);
    }
    clang.disposeIndex(index);
    file_unmap(&source);
    return ok;
}

bool check_c(Arena *a, const char *path, const Options *o) {
    if (!open_library()) return false;
    const char *flags[] = { "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-x", "c", "-std=c99", NULL };
    int n = (int)COUNT(flags) - 1;
    const char *header = arena_printf(a, "%.*s.h", (int)(strlen(path) - 2), path);
    // what libclang is told of others, it may not know
    bool x86 = o->machine.arch && !strcmp(o->machine.arch, "x86-64");
    if (x86 || o->machine.native) flags[n++] = arena_printf(a, "-march=%s", o->target);
    bool ok = parse(a, path, flags, n);
    flags[6] = "c++";
    flags[7] = "-std=c++11";
    flags[8] = "-Wno-unused-function"; // its inline functions are for who includes it
    return parse(a, header, flags, 9) && ok;
}
#else
const char *check_version(void) { return NULL; }

bool check_c(Arena *a, const char *path, const Options *o) {
    (void)a, (void)path, (void)o;
    diag_error_as(EXIT_USAGE, NULL, "--check: this burncc is built without libclang");
    return false;
}
#endif
