#!/bin/sh
# Compares the public API of each published library with the last release, or with the revision that is given:
# a version that promises more than it keeps is found before its tag. It compiles for minutes, and so is part
# of a release, not of CI, where docs/api shows each change of the API.
#
#   packaging/semver.sh [REVISION]
set -eu
cd "$(dirname "$0")/.."
version=${CARGO_SEMVER_CHECKS:-0.51.0}

before=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null || true)}
if [ -z "$before" ]; then
  echo 'semver: there was no release yet, so there is nothing to compare with'
  exit 0
fi
cargo semver-checks --version 2>/dev/null || cargo install cargo-semver-checks --version "$version" --locked
# The lists of the APIs that are promised name the libraries.
set --
for list in docs/api/*.txt; do
  set -- "$@" --package "$(basename "$list" .txt)"
done
cargo semver-checks check-release --baseline-rev "$before" "$@"
