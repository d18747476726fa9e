# Completes NAME. What completes other commands goes on doing so.
let former = $env.config.completions.external.completer?
$env.config.completions.external.enable = true
$env.config.completions.external.completer = {|spans|
    if ($spans | first) == "NAME" {
        with-env {STEAD_COMPLETE: "nushell"} { ^NAME -- ...$spans } | lines | each {|line|
            let parts = $line | split row --number 2 "\t"
            let value = $parts | first
            # It is inserted as it is.
            let value = if $value =~ '^[\w./=:@%+,~-]+$' { $value } else { $value | to nuon }
            {value: $value, description: ($parts | get --optional 1 | default "")}
        }
    } else if $former != null {
        do $former $spans
    }
}
