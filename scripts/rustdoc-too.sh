#!/bin/sh
# In place of rustdoc under `cargo test --doc`: runs the examples of a crate as asked, then makes its pages, so that a link
# that leads nowhere fails. `cargo doc` would check all dependencies once more for that; here they are built already.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
rustdoc=$(rustc --print sysroot)/bin/rustdoc
"$rustdoc" "$@"
case " $* " in *" --test "*) ;; *) exit 0 ;; esac
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case "$argument" in
    --test | --test-*=*) ;;
    --test-*) shift && left=$((left - 1)) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "$rustdoc" "$@" --document-private-items --deny warnings --out-dir "$root/target/doc"
