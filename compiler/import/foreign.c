// SPDX-License-Identifier: MIT OR Apache-2.0
// Names what was given in a model's place: a web page that a download saved, weights without a graph, another
// framework's model, an archive.
//
// In: a file that no front end could read, or a folder. Out: what it is and what helps. The idea: a row per kind,
// recognised by the bytes that the kind begins with (or has at an offset); files of weights are recognised by their
// own readers.
#define _POSIX_C_SOURCE 200809L
#include "import/foreign.h"
#include "import/weights/weights.h"
#include "import/weights/zip.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#define UNPACK "; unpack it and give the .onnx in it"
#define TO_ONNX "; convert it to ONNX with tf2onnx"
#define BYTES(s) s, sizeof s - 1

static const struct { size_t at; const char *bytes; size_t n; const char *what; } signatures[] = {
    { 0, BYTES("version https://git-lfs"), "the pointer that Git LFS keeps in a large file's place; `git lfs pull` "
        "fetches the file itself" },
    { 0, BYTES("GGUF"), "a GGUF file: weights for one runtime, without a graph; look for the same model as ONNX" },
    { 4, BYTES("TFL3"), "a TensorFlow Lite model" TO_ONNX " (--tflite)" },
    { 4, BYTES("ORTM"), "a model in ONNX Runtime's own format (.ort); give the .onnx that it was made from" },
    { 0, BYTES("\x89HDF\r\n\x1a\n"), "an HDF5 file, as Keras writes models" TO_ONNX },
    { 0, BYTES("\x1f\x8b"), "compressed by gzip; `gunzip` it first" },
    { 0, BYTES("\x28\xb5\x2f\xfd"), "compressed by zstd; `unzstd` it first" },
    { 0, BYTES("\xfd" "7zXZ"), "compressed by xz; `unxz` it first" },
    { 0, BYTES("BZh"), "compressed by bzip2; `bunzip2` it first" },
    { 0, BYTES("7z\xbc\xaf"), "a 7-Zip archive" UNPACK },
    { 257, BYTES("ustar"), "a tar archive" UNPACK },
    { 0, BYTES("\x93NUMPY"), "an array of NumPy's, no model; `burncc run` takes it as --input" },
    { 0, BYTES("\x89PNG"), "a PNG image, no model; `burncc run` takes it as --input" },
    { 0, BYTES("\xff\xd8\xff"), "a JPEG image, no model; `burncc run` takes it as --input" },
    { 0, BYTES("\x7f" "ELF"), "a program or library, no model" },
};

// The first word of a text, in small letters and behind white space: is it this one?
static bool begins(const File *f, const char *word) {
    size_t at = 0, n = strlen(word);
    while (at < f->size && isspace(f->data[at])) at++;
    for (size_t i = 0; i < n; i++)
        if (at + i >= f->size || tolower(f->data[at + i]) != word[i]) return false;
    return true;
}

// Anything in a zip archive that PyTorch's reader would claim: TorchScript and pickled modules have data.pkl too.
static const char *zip_kind(const File *f) {
    Arena *a = arena_new();
    Zip *z = zip_read(a, NULL, f);
    bool torch = false, keras = false;
    for (int i = 0; z && i < zip_count(z); i++) {
        const char *name = zip_name(z, i), *slash = strrchr(name, '/');
        torch = torch || !strcmp(slash ? slash + 1 : name, "data.pkl");
        keras = keras || !strcmp(name, "model.weights.h5");
    }
    if (z) zip_done(z);
    arena_free(a);
    return torch ? "a PyTorch file; export the model with torch.onnx.export, or give the file's weights to a model "
                   "with --weights" :
        keras    ? "a Keras model" TO_ONNX :
                   "a zip archive" UNPACK;
}

// TensorFlow's are messages of protobuf as ONNX's are. A GraphDef begins with its first node (field 1), which begins
// with the node's name and operator (fields 1 and 2); a SavedModel with its version, 1, and field 2, a whole graph.
static const char *tensorflow_kind(const File *f) {
    const uint8_t *d = f->data;
    if (f->size > 8 && d[0] == 0x08 && d[1] == 1 && d[2] == 0x12)
        return "perhaps TensorFlow's SavedModel" TO_ONNX " (--saved-model and the folder)";
    size_t at = 1;
    while (at < f->size && at < 6 && d[at] & 0x80) at++;
    if (f->size > 8 && d[0] == 0x0a && at + 3 < f->size && d[at + 1] == 0x0a) {
        size_t op = at + 3 + d[at + 2];
        if (d[at + 2] < 128 && op < f->size && d[op] == 0x12) return "perhaps a TensorFlow graph (.pb)" TO_ONNX;
    }
    return NULL;
}

const char *foreign_file(const File *f) {
    if (!f->size) return "an empty file; was its download interrupted?";
    for (size_t i = 0; i < COUNT(signatures); i++) {
        size_t end = signatures[i].at + signatures[i].n;
        if (f->size >= end && !memcmp(f->data + signatures[i].at, signatures[i].bytes, signatures[i].n))
            return signatures[i].what;
    }
    if (begins(f, "<!doctype html") || begins(f, "<html"))
        return "a web page; the address that it was loaded from shows the file and is not the file";
    if (begins(f, "<?xml")) return "an XML file; of OpenVINO's models give the .onnx that they were made from";
    if (weights_claimed(f))
        return zip_begins(f) ? zip_kind(f) :
                               "a file of weights without a graph; give it to a model with --weights, or export that "
                               "model as ONNX where the weights come from";
    return tensorflow_kind(f);
}

const char *foreign_folder(Arena *a, const char *path) {
    struct stat st;
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) return NULL;
    if (!stat(arena_printf(a, "%s/saved_model.pb", path), &st))
        return "TensorFlow's SavedModel" TO_ONNX " (--saved-model)";
    const char *found = NULL;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && !strcmp(dot, ".onnx") && (!found || strcmp(e->d_name, found) < 0))
            found = arena_strdup(a, e->d_name);
    }
    if (d) closedir(d);
    return found ? arena_printf(a, "a folder; the model may be %s in it", found) : "a folder, and no .onnx is in it";
}
