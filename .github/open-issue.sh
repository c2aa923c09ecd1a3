#!/usr/bin/env bash
# Open an issue that has this title and links to the current workflow run, unless one with this title is already open.
set -euo pipefail
title=$1
run="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
open=$(gh issue list --repo "$GITHUB_REPOSITORY" --state open --search "\"$title\" in:title" --json number --jq length)
if [ "$open" = 0 ]; then
    gh issue create --repo "$GITHUB_REPOSITORY" --title "$title" --body "See $run"
fi
