// SPDX-License-Identifier: MIT OR Apache-2.0
// The rows of templates.def say what the files under templates/c are: which holes they have, what their
// functions are given, what their epilogues are told.
#include "../../compiler/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const Template *const rows[] = {
#define TEMPLATE(name, ...) &template_##name,
#include "templates.def"
#undef TEMPLATE
};

// Is it a hole of the file, with this beginning of its line?
static bool has_hole(const char *text, const char *define) {
    const char *first = strstr(text, "// holes\n"), *end = strstr(text, "// end holes\n"), *at = strstr(text, define);
    assert_true(first && end);
    return at && at > first && at < end;
}

static void holes(void **unused) {
    (void)unused;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const Template *t = rows[i];
        const char *text = template_text(t->file);
        char epilogue[100];
        assert_non_null(text);
        assert_int_equal(has_hole(text, "#define PARTS 0\n"), t->parts != NO_PARTS);
        assert_int_equal(has_hole(text, "#define PART_COLUMNS "), t->parts == PARTS_BY_AXIS);
        assert_int_equal(has_hole(text, "#define STRIP 0\n"), t->strips);
        snprintf(epilogue, sizeof epilogue, "#define EPILOGUE(%s) ", t->epilogue);
        assert_true(has_hole(text, epilogue));
    }
}

// The operands and the result in this order, then what the epilogue wants.
static void params(void **unused) {
    (void)unused;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *at = strstr(strstr(template_text(rows[i]->file), "// end holes\n"), " KERNEL(");
        assert_non_null(at);
        for (const char *word = rows[i]->params; *word; word += *word == ' ') {
            char want[60];
            size_t n = strcspn(word, " ");
            // of bytes: constants, which nothing is stored over
            const bool apart = !rows[i]->over || (*word == 'B' && strstr(rows[i]->file, "_q8"));
            const char *pointer = apart ? "restrict " : "*";
            snprintf(want, sizeof want, "%s%.*s%s", pointer, (int)n, word, word[n] ? "," : " EPILOGUE_PARAMS");
            at = strstr(at, pointer);
            assert_non_null(at);
            assert_memory_equal(at, want, strlen(want));
            at += strlen(want);
            word += n;
        }
    }
}

// An epilogue is told the first of the axes that expressions may use.
static void axes(void **unused) {
    (void)unused;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *given = rows[i]->epilogue, *axis = rows[i]->axes;
        assert_memory_equal(given, "acc", 3);
        for (given += 3; *given; axis += *axis == ' ') {
            size_t n = strcspn(axis, " ");
            assert_memory_equal(given, ", ", 2);
            assert_memory_equal(given + 2, axis, n);
            given += 2 + n;
            axis += n;
        }
    }
}

// What stands behind a condition keeps it from being decided: it would go into the C, with its holes filled.
static void conditions(void **unused) {
    (void)unused;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *line = template_text(rows[i]->file);
        while ((line = strstr(line, "\n#"))) {
            const size_t n = strcspn(++line, "\n");
            const char *comment = strstr(line, "/*");
            const bool decides = !strncmp(line, "#if ", 4) || !strncmp(line, "#elif ", 6);
            assert_false(decides && comment && comment < line + n);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(holes), cmocka_unit_test(params), cmocka_unit_test(axes),
        cmocka_unit_test(conditions) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
