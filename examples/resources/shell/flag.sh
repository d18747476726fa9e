#!/bin/sh
# A file that says yes or no. Properties come as variables of the same name: $path and $on.
case $1 in
    get)
        [ "$(cat "$path" 2>/dev/null)" = yes ] && on=true || on=false
        quoted=$(printf '%s' "$path" | sed 's/[\\"]/\\&/g')
        printf '{"path": "%s", "on": %s}\n' "$quoted" "$on"
        ;;
    set)
        case $on in
            true) word=yes ;;
            false) word=no ;;
            *) exit 0 ;; # Nothing is said of it, so nothing is changed.
        esac
        printf '%s\n' "$word" > "$path" || exit 1
        ;;
esac
