# shellcheck shell=bash
# Found as BASH_ENV by a bash that is started ahead of its program: waits for the program's
# environment, then leaves next to no trace of itself. The last thing that happens before the
# interpreter opens the program's file. Of words there are, each with a NUL behind it: the whole
# length, how many arguments (none: they would not become BASH_ARGV), how many variables, and they.
unset BASH_ENV
IFS= read -r -d '' -u 63 __word
IFS= read -r -d '' -u 63 __word
IFS= read -r -d '' -u 63 __n || exit 125 # whoever should have said it is gone
while ((__n-- > 0)); do
    IFS= read -r -d '' -u 63 __word
    # shellcheck disable=SC2163 # what it holds is NAME=VALUE
    export "$__word"
done
unset __n __word
exec 63<&-
SECONDS=0
: "$BASH" # is $_ then, as in one that has run nothing yet
