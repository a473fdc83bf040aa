#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc new: projects that build and predict as they stand, by the commands of their README without CMake (install.sh
# has those with it).
source "$(dirname "$0")/tap.sh"
digits=$here/../../models/digits/digits.onnx
export PATH=$(dirname "$burncc"):$PATH

by_readme() { # the commands of the second block
    (cd "$1" && sed -n '/^The same/,/^`/s/^    //p' README.md | sed 's/-march=native//' | bash -e)
}
status 0 "a project" "$burncc" new flowers
[ ! -s err ] && [ ! -s out ]
result $? "without a word"
status 0 "builds and predicts" by_readme flowers
says '^kinds: 5\.66[0-9]*e-05 0\.0969[0-9]+ 0\.9029[0-9]+$'
status 0 "of a model, in C++" "$burncc" new reader --model "$digits" --lang cpp -v
says '^reader/digits_model.onnx +[0-9.]+ KiB  model$'
cmp -s reader/digits_model.onnx "$digits"
result $? "the model is the same"
status 0 "it builds and predicts" by_readme reader
says '^logits: -0\.43[0-9]+ 3\.74[0-9]+ -1\.2'
status 0 "its program in C, every warning" "$burncc" new plain --model "$digits"
sed -i 's/^    cc -O3 main.c/    cc -Wall -Wextra -pedantic -Werror main.c/' plain/README.md
status 0 "it builds" by_readme plain
says '^logits: -0\.43'
status 2 "where something is" "$burncc" new plain
says "'plain' is not empty; burncc new wants a folder of its own"
status 2 "another language" "$burncc" new other --lang cobol
says "there are c and cpp, not 'cobol'"
status 4 "no model" "$burncc" new other --model missing.onnx
status 2 "nowhere" "$burncc" new
finish
