#!/usr/bin/env bash
# Open an issue with this title that leads to the current workflow run, unless such an issue is open.
set -euo pipefail
title=$1
run="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
open=$(gh issue list --repo "$GITHUB_REPOSITORY" --state open --search "\"$title\" in:title" --json number --jq length)
if [ "$open" = 0 ]; then
    gh issue create --repo "$GITHUB_REPOSITORY" --title "$title" --body "See $run"
fi
