#!/usr/bin/env bash
# comment.sh NUMBER FILE NAME: writes a pull request's comment of that name, or replaces it. Needs gh, GH_TOKEN and REPOSITORY
# (owner/name).
set -euo pipefail
number=$1 file=$2 mark="<!-- regress: $3 -->"
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{ echo "$mark"; head -c 60000 "$file"; } > "$body"
export mark
id=$(gh api --paginate "repos/$REPOSITORY/issues/$number/comments" \
  --jq '.[] | select(.user.type == "Bot" and (.body | startswith(env.mark))) | .id' | sed -n 1p)
if [ -n "$id" ]; then
  gh api -X PATCH "repos/$REPOSITORY/issues/comments/$id" -F body=@"$body" --silent
else
  gh api -X POST "repos/$REPOSITORY/issues/$number/comments" -F body=@"$body" --silent
fi
