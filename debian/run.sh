#!/bin/sh
# usage: run.sh <module> [arguments]
#
# Runs a module of Freehold with the credentials of its unit. The credential SECRET_KEY becomes the variable SECRET_KEY_FILE.
set -eu
for file in "${CREDENTIALS_DIRECTORY:-/nonexistent}"/secret_*; do
  name=${file##*/secret_}
  case $name in
  *[!A-Z0-9_]*) ;; # the copy of an editor, or no file at all
  *) export "${name}_FILE=$file" ;;
  esac
done
module=$1
shift
exec /usr/lib/freehold/node_modules/.bin/node "/usr/lib/freehold/$module" "$@"
