// SPDX-License-Identifier: MIT OR Apache-2.0
// Turns files into C arrays, so that the compiler carries its templates and the runtime's text with it.
//
// In: embed OUTPUT FUNCTION NAME=PATH...   Out: a C file that defines `const char *FUNCTION(const char *name)`, which
// gives the text of the file called NAME (ended by 0), NULL for other names. Bytes are printed as numbers: string
// literals have a length limit in C.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *path) {
    fprintf(stderr, "embed: %s: %s\n", path, strerror(errno));
    exit(1);
}

static void write_bytes(FILE *out, int number, const char *path) {
    FILE *in = fopen(path, "rb");
    if (!in) stop(path);
    fprintf(out, "static const char file_%d[] = {", number);
    int c, column = 0;
    while ((c = getc(in)) != EOF) fprintf(out, "%s%d,", column++ % 32 ? "" : "\n", c > 127 ? c - 256 : c);
    fprintf(out, "\n0};\n");
    if (ferror(in)) stop(path);
    fclose(in);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: embed OUTPUT FUNCTION NAME=PATH...\n", stderr);
        return 2;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out) stop(argv[1]);
    fprintf(out, "#include <string.h>\nconst char *%s(const char *name);\n", argv[2]);
    for (int i = 3; i < argc; i++) {
        char *path = strchr(argv[i], '=');
        if (!path) {
            fprintf(stderr, "embed: %s is not NAME=PATH\n", argv[i]);
            return 2;
        }
        *path++ = 0;
        write_bytes(out, i - 3, path);
    }
    fprintf(out, "const char *%s(const char *name) {\n", argv[2]);
    for (int i = 3; i < argc; i++) fprintf(out, "    if (!strcmp(name, \"%s\")) return file_%d;\n", argv[i], i - 3);
    fputs("    return NULL;\n}\n", out);
    if (fclose(out)) stop(argv[1]);
    return 0;
}
