// SPDX-License-Identifier: MIT OR Apache-2.0
// Bodies in braces: texts and what they become, the corners of C's grammar that generated code has among them; and
// what is left as it is.
#include "base/base.h"
#include "../../codegen/c/c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const texts[][2] = {
    { "void f(void)\n{\n    if (a)\n        b();\n}\n", "void f(void)\n{\n    if (a) {\n        b();\n    }\n}\n" },
    { "{ if (a) b(); }", "{ if (a) { b(); } }" },
    { "{ if (a) { b(); } }", NULL },
    { "    if (a)\n        b();\n    else\n        c();\n",
        "    if (a) {\n        b();\n    } else {\n        c();\n    }\n" },
    { "if (a) b(); else if (c) d();", "if (a) { b(); } else if (c) { d(); } else { /* nothing */ }" },
    { "if (a) { b(); } else if (c) { d(); }", "if (a) { b(); } else if (c) { d(); } else { /* nothing */ }" },
    { "if (a) b(); else if (c) d(); else e();", "if (a) { b(); } else if (c) { d(); } else { e(); }" },
    { "for (;;)\n    for (int i = 0; i < 3; i++)\n        if (x[i]) y();\nz();\n",
        "for (;;) {\n    for (int i = 0; i < 3; i++) {\n        if (x[i]) { y(); }\n    }\n}\nz();\n" },
    { "if (a) for (;;) b(); else c();", "if (a) { for (;;) { b(); } } else { c(); }" },
    { "do b(); while (a);", "do { b(); } while (a);" },
    { "while (a) ;", "while (a) { ; }" },
    { "switch (a) { case ';': if (b) c(); break; default: d(); }",
        "switch (a) { case ';': if (b) { c(); } break; default: d(); }" },
    { "if (a) /* { */\n    b(); /* why */\n", "if (a) { /* { */\n    b(); /* why */\n}\n" },
    { "if (a) s = \"if (x) ;\";", "if (a) { s = \"if (x) ;\"; }" },
    { "static const int t[] = { 1, 2, (3) };\nif (a) t = (T){ 1, 2 };",
        "static const int t[] = { 1, 2, (3) };\nif (a) { t = (T){ 1, 2 }; }" },
    { "LOOP\n    for (;;)\n        b();\n", "LOOP\n    for (;;) {\n        b();\n    }\n" },
    { "memcpy(a, b, 3); x = memcpy(a, b, 3);", "(void)memcpy(a, b, 3); x = memcpy(a, b, 3);" },
    { "void *memcpy(void *to, const void *from, size_t n);", NULL },
    { "#define EACH(i) \\\n    for (;;)    \\\n        b(i);\nc();\n", "#define EACH(i) \\\n    for (;;) {    \\\n"
        "        b(i); }\nc();\n" },
    { "#define EACH(i) for (;;) b(i)\nif (a) EACH(3);\n", "#define EACH(i) for (;;) b(i)\nif (a) { EACH(3); }\n" },
    { "#define EACH for (;;)\nEACH b();\n", NULL },
    { "for (;;)\n#if X\n    b();\n#else\n    c();\n#endif\n", NULL },
    { "if (a) { b(); } else if (c) { d(); }\n#if X\nelse { e(); }\n#endif\n", NULL },
    { "if (a)\n#pragma GCC unroll 2\n    for (;;)\n        b();\n",
        "if (a) {\n#pragma GCC unroll 2\n    for (;;) {\n        b();\n    }\n}\n" },
    { "int forward = iffy(dot) + whiled;", NULL },
};

static void bodies(void **s) {
    (void)s;
    for (size_t i = 0; i < COUNT(texts); i++) {
        Arena *a = arena_new();
        Text once, twice;
        text_init(&once, a);
        text_init(&twice, a);
        c_compound(&once, texts[i][0]);
        assert_string_equal(once.at, texts[i][1] ? texts[i][1] : texts[i][0]);
        c_compound(&twice, once.at);
        if (!strstr(once.at, "(void)")) assert_string_equal(twice.at, once.at);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(bodies) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
