#compdef NAME
_NAME() {
    local line value help current=${(Q)PREFIX} home=
    local -a open closed
    # What is matched is quoted, and the home directory is none in quotes.
    compset -P '\~/' && home='~/'
    for line in "${(@f)$(STEAD_COMPLETE=zsh NAME -- "${(@Q)words[1,CURRENT-1]}" "$current" 2>/dev/null)}"; do
        line=${line#"$home"}
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
