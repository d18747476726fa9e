<#
All that comes before the first call of a resource: its module is loaded. Puts out the class, or the module of a script.
#>
param($kind, $path, $resource)

# An error that ends a statement would not end a resource without a 'try' around it. 'exit' and a 'break' outside of a loop leave it
# without an error: a call has come to its end where that is said.

$load = {
    param($path)
    # A module of the program itself has no file.
    if ($path.StartsWith('text:', [StringComparison]::Ordinal)) { return New-Module -ScriptBlock ([scriptblock]::Create($path.Substring(5))) }
    # A path is a pattern here.
    $loaded = @(Import-Module -Name ([WildcardPattern]::Escape($path)) -PassThru -DisableNameChecking -ErrorAction Stop)
    # Scripts to be processed may be among them.
    foreach ($each in $loaded) { if ($each.Path -cne $path) { $each } }
    foreach ($each in $loaded) { if ($each.Path -ceq $path) { $each } }
}

# A class is visible in the scope of its module alone.
$findType = {
    param($module, $name)
    foreach ($each in @($module) + @($module.NestedModules)) {
        if (-not $each.SessionState) { continue }
        $type = & $each { param($n) $n -as [type] } $name
        if ($type) { return $type }
    }
    # That of an assembly is visible everywhere.
    $name -as [type]
}

$target = @(& $load $path)[-1]
if ($kind -eq 'class') { $target = & $findType $target $resource }
if ($null -ne $target) { $target }
