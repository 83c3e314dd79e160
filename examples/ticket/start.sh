#!/bin/sh
# Makes a git repository of sample/ in repo/, as if you had cloned it.
set -eu
rm -rf repo && cp -R sample repo && cd repo
git init -q -b main .
git config user.name "Ida Quist"
git config user.email ida@example.org
git add -A
git commit -q -m "Split a bill"
