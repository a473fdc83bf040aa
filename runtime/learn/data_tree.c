/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folders as classes. In: FOLDER/CLASS/FILE, FOLDER/FILE, or a file. Out: the files' paths and labels, in order of
 * names. */
#include "data_own.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void data_tree_close(DataTree *t)
{
    if (!t) return;
    burn_data_close(t->like);
    for (int64_t i = 0; i < t->count; i++) free(t->paths[i]);
    for (int k = 0; k < t->class_count; k++) free(t->classes[k]);
    free(t->paths);
    free(t->labels);
    free(t->classes);
    free(t);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join_path(const char *folder, const char *name)
{
    size_t a = strlen(folder), b = strlen(name);
    char *path = malloc(a + b + 2);
    if (!path) return NULL;
    memcpy(path, folder, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b + 1);
    return path;
}

static void names_free(char **names, int64_t n)
{
    for (int64_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* The names in a folder that are folders, or files, in order; their number, or an error. */
static int64_t list(const char *folder, int folders, char ***names, burn_said *said)
{
    DIR *d = opendir(folder);
    int64_t n = 0, room = 0;
    *names = NULL;
    if (!d) return data_said(said, BURN_EIO, "%s: is no folder that can be read", folder);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        char *path = e->d_name[0] == '.' ? NULL : join_path(folder, e->d_name);
        int wanted = path && !stat(path, &st) && (folders ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
        free(path);
        if (!wanted) continue;
        char **more = n < room ? *names : realloc(*names, (size_t)(room = 2 * n + 16) * sizeof *more);
        if (more) *names = more;
        char *name = more ? malloc(strlen(e->d_name) + 1) : NULL;
        if (!name) {
            closedir(d);
            names_free(*names, n);
            *names = NULL;
            return data_said(said, BURN_ENOMEM, "no memory");
        }
        (*names)[n++] = strcpy(name, e->d_name);
    }
    closedir(d);
    if (n) qsort(*names, (size_t)n, sizeof **names, by_name);
    return n;
}

static int add_file(DataTree *t, char *path, int64_t label, burn_said *said)
{
    if (t->count == t->room) {
        int64_t room = 2 * t->room + 256;
        char **paths = realloc(t->paths, (size_t)room * sizeof *paths);
        if (paths) t->paths = paths;
        int64_t *labels = realloc(t->labels, (size_t)room * sizeof *labels);
        if (labels) t->labels = labels;
        if (paths && labels) t->room = room;
    }
    if (!path || t->count == t->room) return free(path), data_said(said, BURN_ENOMEM, "no memory");
    t->labels[t->count] = label;
    t->paths[t->count++] = path;
    return BURN_OK;
}

/* The files of a folder, all of one label. */
static int add_files(DataTree *t, const char *folder, int64_t label, burn_said *said)
{
    char **names;
    int64_t n = list(folder, 0, &names, said);
    if (n < 0) return (int)n;
    int error = BURN_OK;
    for (int64_t i = 0; i < n && !error; i++) error = add_file(t, join_path(folder, names[i]), label, said);
    names_free(names, n);
    return error;
}

const burn_field *data_classes(const burn_dataset *like, int f)
{
    return f >= 0 && f < like->field_count && like->fields[f].classes ? &like->fields[f] : NULL;
}

static const burn_field *label_of(const burn_dataset *like)
{
    return data_classes(like, burn_data_field(like, "label"));
}

/* The place of a class among those of the data before, or -1. */
static int64_t class_of(const burn_field *label, const char *name)
{
    for (int k = 0; k < label->class_count; k++)
        if (!strcmp(label->classes[k], name)) return k;
    return -1;
}

static int add_folders(DataTree *t, const char *folder, burn_said *said)
{
    int64_t n = list(folder, 1, &t->classes, said);
    if (n < 0) return (int)n;
    t->class_count = (int)n;
    int error = n ? BURN_OK : add_files(t, folder, 0, said);
    for (int k = 0; k < t->class_count && !error; k++) {
        int64_t label = t->like ? class_of(label_of(t->like), t->classes[k]) : k;
        if (label < 0)
            return data_said(said, BURN_EFORMAT, "%s: '%s' is no class of the folder before", folder, t->classes[k]);
        char *path = join_path(folder, t->classes[k]);
        error = path ? add_files(t, path, label, said) : data_said(said, BURN_ENOMEM, "no memory");
        free(path);
    }
    if (!error && !t->count) error = data_said(said, BURN_EFORMAT, "%s: has no files", folder);
    return error;
}

DataTree *data_tree_open(const char *path, const burn_dataset *like, int *error, burn_said *said)
{
    struct stat st;
    if (like && !label_of(like)) return *error = data_said(said, BURN_EINVAL, "like: has no names of classes"), NULL;
    DataTree *t = calloc(1, sizeof *t);
    if (!t) return *error = data_said(said, BURN_ENOMEM, "no memory"), NULL;
    if (like) t->like = burn_data_keep((burn_dataset *)(uintptr_t)like);
    if (!stat(path, &st) && S_ISREG(st.st_mode)) {
        char *own = malloc(strlen(path) + 1);
        *error = add_file(t, own ? strcpy(own, path) : NULL, 0, said);
    } else *error = add_folders(t, path, said);
    if (!*error) return t;
    data_tree_close(t);
    return NULL;
}

void data_tree_fields(const DataTree *t, burn_dataset *model)
{
    if (!t->class_count) return;
    burn_field *field = &model->fields[model->field_count++];
    *field = burn_field_of("label", BURN_INT64, 0, NULL);
    field->class_count = t->like ? label_of(t->like)->class_count : t->class_count;
    field->classes = t->like ? label_of(t->like)->classes : (const char *const *)t->classes;
}
