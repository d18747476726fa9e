#compdef NAME
_NAME() {
    local line value help
    local -a open closed
    for line in "${(@f)$(STEAD_COMPLETE=zsh NAME -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        value=${line%%$'\t'*}
        [[ -n $value ]] || continue
        help=${line#*$'\t'}
        line=${${value//\\/\\\\}//:/\\:}${help:+:$help}
        # Behind a directory or NAME= something is still missing.
        if [[ $value == *[=/] ]]; then open+=("$line"); else closed+=("$line"); fi
    done
    _describe -V value closed -- open -S ''
}
if [[ ${funcstack[1]} == _NAME ]]; then
    _NAME "$@"
else
    compdef _NAME NAME
fi
