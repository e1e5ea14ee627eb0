#!/bin/sh
# rustc for members of the workspace that are fuzzed: their code counts which of its places are reached. For `RUSTC_WORKSPACE_WRAPPER`.
case " $* " in
*" build_script_build "*) exec "$@" ;;
esac
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
