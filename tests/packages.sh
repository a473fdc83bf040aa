#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Releases: one version in all places, archives that have the same bytes when they are made again, and (behind
# BURNCC_TEST_ALL: four builds of everything, without optimization, which is of no account here) Debian's packages and
# the archive of binaries.
#
# usage: packages.sh BURNCC
source "$(dirname "${BASH_SOURCE[0]}")/commands/tap.sh"
root=$(realpath "$here/../..")
skip() { # the reason, and what
    count=$((count + 1))
    echo "ok $count - $2 # SKIP $1"
}
same() { # two folders of files, and what
    (cd "$1" && sha256sum -- *.*) >first
    (cd "$2" && sha256sum -- *.*) >out
    cmp -s first out
    result $? "$3"
}

touch out err
version=$("$burncc" --version | sed -n '1s/burncc //p')
sed -n "s/^burncc (\(.*\)) .*/\1/p" "$root/debian/changelog" | head -n 1 >out
says "^$version\$"
for library in $(sed -n '/^packages=/,/^)/s/#.*//p' "$root/scripts/bootstrap" | tr ' ' '\n' |
    grep -E '^(lib|zlib|glslang|spirv)' | grep -Ev 'openblas|cmocka|libc6|mesa'); do
    tr ' ,' '\n\n' <"$root/debian/control" | grep -Fxq "$library" || echo "$library"
done >out
silent . # libraries of scripts/bootstrap that debian/control does not build with

if git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
    status 0 "an archive of the sources" "$root/scripts/release" --source "$work/a"
    status 0 "the same again" env TZ=Asia/Tokyo LANG=C.UTF-8 "$root/scripts/release" --source "$work/b"
    same a b "they have the same bytes"
    status 0 "it unpacks" tar -xf "a/burncc-$version.tar.xz"
    git -C "$root" show HEAD:meson.build | cmp -s - "burncc-$version/meson.build"
    result $? "its files are those of the commit"
else skip "no git here" "an archive of the sources"; fi
if [ -z "${BURNCC_TEST_ALL:-}" ]; then
    skip "BURNCC_TEST_ALL is not set" "packages and binaries"
    finish
    exit
fi

if command -v dh >/dev/null; then
    for build in c d; do
        mkdir $build
        git -C "$root" archive --prefix="source/" HEAD | tar -x
        mv source $build/
        status 0 "Debian's packages" bash -c 'cd "$1" && SOURCE_DATE_EPOCH=1700000000 \
            DEB_BUILD_OPTIONS=noopt dpkg-buildpackage -us -uc -b' - $build/source
        rm -rf $build/source $build/*.buildinfo $build/*.changes
    done
    same c d "they have the same bytes, from another folder"
    mkdir root
    for package in c/burncc*_*.deb; do dpkg-deb -x "$package" root; done
    status 0 "the packaged compiler" root/usr/bin/burncc --version
    says "^burncc $version\$"
    status 0 "it compiles" root/usr/bin/burncc "$root/models/digits/digits.onnx" -o digits.c
    cmp -s "$root/models/digits/digits.onnx" root/usr/share/doc/burncc/models/digits/digits.onnx
    result $? "the examples' model is there as it is"
    dpkg-deb -f c/burncc-dev_*.deb Depends >out
    says 'libtiff-dev'
    there=$(find root/usr -name burncc-config.cmake -o -name burncc.1.gz -o -name burncc.pc | wc -l)
    result $((there != 3)) "its manual page, CMake package and module of pkg-config"
else skip "no debhelper here" "Debian's packages"; fi
export CFLAGS=-O0
status 0 "an archive of binaries" "$root/scripts/release" "$work/e"
status 0 "the same again" "$root/scripts/release" "$work/f"
same e f "they have the same bytes"
status 0 "it unpacks" bash -c "tar -xf e/burncc-*-*.tar.xz && mv burncc-*-*/ moved"
status 0 "it runs" moved/bin/burncc --version
says "^burncc $version\$"
finish
