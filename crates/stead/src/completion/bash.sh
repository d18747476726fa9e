_NAME() {
    local current=${COMP_WORDS[COMP_CWORD]} word words=() joins= prefix
    [[ $current == [=:]* || $current == [\'\"]* ]] || current=$2
    # '=' and ':' are words of their own here; what they stand between is one word.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD}" "$current"; do
        if [[ -n $joins || $word == [=:]* ]] && ((${#words[@]} > 1)); then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        if [[ $word == [=:]* ]]; then joins=yes; else joins=; fi
    done
    mapfile -t COMPREPLY < <(STEAD_COMPLETE=bash NAME -- "${words[@]}" 2>/dev/null)
    # Only what follows the last '=' or ':' is replaced.
    prefix=${words[-1]%"$2"}
    COMPREPLY=("${COMPREPLY[@]#"${prefix#[\'\"]}"}")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _NAME NAME
