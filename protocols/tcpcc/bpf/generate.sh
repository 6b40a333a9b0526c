#!/usr/bin/env bash
# Compiles every *.bpf.c of this folder to its object, without what only a
# debugger reads and without where the folder lies. Both ends that Fieldmesh runs on are little endian.
#
#   generate.sh [FOLDER]   where the objects go; here by default
set -euo pipefail
to=$(realpath "${1:-$(dirname "$0")}")
cd "$(dirname "$0")"
mkdir -p "$to/yardsticks"
for source in *.bpf.c yardsticks/*.bpf.c; do
	object=$to/${source%.c}.o
	clang -target bpfel -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror \
		-ffile-prefix-map="$PWD=." -fdebug-compilation-dir=. -c "$source" -o "$object"
	llvm-strip --strip-debug "$object"
done
# What the objects were made from: `make check` compares, without a compiler.
sha256sum ./*.c ./*.h yardsticks/*.c yardsticks/*.h > "$to/sources.sha256"
