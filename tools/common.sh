# Sourced by the scripts here: strict mode, the root of the tree, and steps that
# say what they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A job server inherited from the outer make is of no use to cmake --build.
unset MAKEFLAGS MFLAGS MAKELEVEL

step() {
    printf '==> %s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}
