#!/usr/bin/env bash
# Bundle the parts of three.js that three.entry.js exports into three.bundle.min.js. Requires Node.js, npm and network access.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
three=0.187.0
esbuild=0.28.2
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-save "three@$three" "esbuild@$esbuild"
cp "$here/three.entry.js" .
node_modules/.bin/esbuild three.entry.js --bundle --minify --format=iife --global-name=THREE --target=es2020 \
  --banner:js="/* three.js $three, MIT licence, Copyright 2010-2026 three.js authors: see three.LICENSE */" \
  --outfile="$here/three.bundle.min.js"
cp node_modules/three/LICENSE "$here/three.LICENSE"
