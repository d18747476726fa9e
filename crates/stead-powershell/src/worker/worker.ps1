<#
A warm worker: reads one request a line and answers with lines, until the socket is closed. One call at a time; whoever
started it ends it when a call takes too long. Standard output and error are not part of the protocol.

Request   {"id":"7","kind":"class","module":"/x/Demo.psd1","resource":"Demo","method":"Set","properties":{"ordered":{..}},
           "records":"verbose","directory":"/home/you"}                        "none": warnings and errors alone
Answers   {"id":"7","stream":"verbose","message":".."}                        any number, as they happen
          {"id":"7","type":"System.Boolean","output":true}                    what the method returned or leaked
          {"id":"7","type":"System.IntPtr","refused":"$: no JSON form .."}
          {"id":"7","done":{"ended":true,"reboot":false}}                     "ended": the script came to its end
       or {"id":"7","error":{"id":"..","message":"..","reboot":false, ..}}
#>
param($socket, $reader, $writer)

Set-StrictMode -Version 3
$ErrorActionPreference = 'Stop'

# ---- JSON -> values -----------------------------------------------------------------------------------------------

# What the property type needs is decided before a value comes here: an object of one member says what is built.
class Wire {
    static [object] Value([System.Text.Json.JsonElement] $element) {
        $kind = $element.ValueKind
        if ($kind -eq [System.Text.Json.JsonValueKind]::String) { return $element.GetString() }
        if ($kind -eq [System.Text.Json.JsonValueKind]::True) { return $true }
        if ($kind -eq [System.Text.Json.JsonValueKind]::False) { return $false }
        if ($kind -eq [System.Text.Json.JsonValueKind]::Null) { return $null }
        foreach ($member in $element.EnumerateObject()) { return [Wire]::Build($member.Name, $member.Value) }
        throw [FormatException]::new('the request is not understood')
    }

    static [object] Build([string] $tag, [System.Text.Json.JsonElement] $content) {
        $invariant = [System.Globalization.CultureInfo]::InvariantCulture
        $float = [System.Globalization.NumberStyles]::Float
        switch ($tag) {
            'integer' { return [Wire]::Integer($content.GetString()) }
            'double' { return [double]::Parse($content.GetString(), $float, $invariant) }
            'decimal' { return [decimal]::Parse($content.GetString(), $float, $invariant) }
            'array' { return [Wire]::Items($content) }
            'hashtable' { $table = @{}; [Wire]::Fill($table, $content); return $table }
            'ordered' { $table = [ordered]@{}; [Wire]::Fill($table, $content); return $table }
            'object' { return [Wire]::Custom($content) }
            'secureString' { return [Wire]::Secure($content.GetString()) }
            'credential' {
                $pair = @{}
                [Wire]::Fill($pair, $content)
                return [pscredential]::new($pair['username'], [Wire]::Secure($pair['password']))
            }
            'cimInstance' {
                $pair = @{}
                [Wire]::Fill($pair, $content)
                return [Wire]::Cim($pair['class'], $pair['properties'])
            }
        }
        throw [FormatException]::new("the request is not understood: '$tag'")
    }

    static [void] Fill([System.Collections.IDictionary] $table, [System.Text.Json.JsonElement] $members) {
        foreach ($member in $members.EnumerateObject()) { $table.psbase.Add($member.Name, [Wire]::Value($member.Value)) }
    }

    static [object] Items([System.Text.Json.JsonElement] $content) {
        $items = [object[]]::new($content.GetArrayLength())
        $index = 0
        $instances = 0
        foreach ($item in $content.EnumerateArray()) {
            $value = [Wire]::Value($item)
            if ($value -is [ciminstance]) { $instances++ }
            $items[$index++] = $value
        }
        # CIM takes no array of objects as an array of instances.
        if ($instances -gt 0 -and $instances -eq $items.Length) { return [ciminstance[]]$items }
        return $items
    }

    static [object] Custom([System.Text.Json.JsonElement] $content) {
        $object = [pscustomobject]::new()
        foreach ($member in $content.EnumerateObject()) {
            $object.psobject.Properties.Add([psnoteproperty]::new($member.Name, [Wire]::Value($member.Value)))
        }
        return $object
    }

    static [object] Integer([string] $digits) {
        $big = [bigint]::Parse($digits, [System.Globalization.CultureInfo]::InvariantCulture)
        if ($big -ge [int]::MinValue -and $big -le [int]::MaxValue) { return [int]$big }
        if ($big -ge [long]::MinValue -and $big -le [long]::MaxValue) { return [long]$big }
        if ($big -ge 0 -and $big -le [ulong]::MaxValue) { return [ulong]$big }
        if ($big -ge [bigint][decimal]::MinValue -and $big -le [bigint][decimal]::MaxValue) { return [decimal]$big }
        return $big
    }

    # Character by character: ConvertTo-SecureString refuses an empty text.
    static [securestring] Secure([string] $text) {
        $secure = [securestring]::new()
        foreach ($character in $text.ToCharArray()) { $secure.AppendChar($character) }
        return $secure
    }

    static [object] Cim([string] $class, [System.Collections.IDictionary] $properties) {
        # Only Windows has it: a command that is not there would be looked for in whatever modules there are.
        if (-not $global:IsWindows) {
            throw [NotSupportedException]::new("a value of the class '$class' needs the cmdlet New-CimInstance, which is not on this system")
        }
        $namespace = 'root/Microsoft/Windows/DesiredStateConfiguration'
        return CimCmdlets\New-CimInstance -ClientOnly -Namespace $namespace -ClassName $class -Property $properties
    }
}

# ---- values -> JSON -----------------------------------------------------------------------------------------------

# What goes out can be put in again, and nothing is cut, and no secret is shown: what has no JSON form is an error.
class Json {
    static [System.Text.Encodings.Web.JavaScriptEncoder] $Encoder = [System.Text.Encodings.Web.JavaScriptEncoder]::UnsafeRelaxedJsonEscaping
    static [System.Text.Encoding] $Strict = [System.Text.UTF8Encoding]::new($false, $true)
    static [regex] $LoneSurrogate = [regex]::new('(?<![\ud800-\udbff])[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])')
    static [int] $MostLevels = 64
    static [int] $LongestMessage = 1048576

    static [string] Of([object] $value) { return [Json]::Node($value, '$', [System.Collections.Generic.List[object]]::new()) }

    static [string] Text([string] $text, [string] $path) {
        try { [void][Json]::Strict.GetByteCount($text) } catch { throw [FormatException]::new("${path}: the string is not valid Unicode (lone surrogate)") }
        return '"' + [Json]::Encoder.Encode($text) + '"'
    }

    # For messages: what is not valid becomes U+FFFD, and what is very long is cut behind a line, since whoever covers secrets
    # in it could not recognize the part of one.
    static [string] Message([string] $text) {
        if ($text.Length -gt [Json]::LongestMessage) {
            $end = $text.LastIndexOf([char]10, [Json]::LongestMessage)
            $text = $text.Substring(0, [Math]::Max($end, 0)) + '...'
        }
        return [Json]::Text([Json]::LoneSurrogate.Replace($text, [string][char]0xfffd), '$')
    }

    static [string] Number([double] $value, [string] $shortest) {
        if ([double]::IsNaN($value)) { return '"NaN"' }
        if ([double]::IsInfinity($value)) { return $(if ($value -gt 0) { '"Infinity"' } else { '"-Infinity"' }) }
        if ($shortest.Contains('.') -or $shortest.Contains('E')) { return $shortest.Replace('E+', 'e').Replace('E', 'e') }
        return $shortest + '.0'
    }

    static [string] Decimal([decimal] $value) {
        $invariant = [System.Globalization.CultureInfo]::InvariantCulture
        if ($value -eq [decimal]::Truncate($value)) { return [Json]::Integer([bigint]$value) }
        $text = $value.ToString($invariant).TrimEnd('0')
        $double = [double]::Parse($text, $invariant)
        $back = [decimal]0
        $float = [System.Globalization.NumberStyles]::Float
        # A number where the double nearest to it has the same digits, else a string.
        if ([decimal]::TryParse($double.ToString('R', $invariant), $float, $invariant, [ref]$back) -and $back -eq $value) { return $text }
        return '"' + $text + '"'
    }

    static [string] Integer([bigint] $value) {
        $text = $value.ToString([System.Globalization.CultureInfo]::InvariantCulture)
        if ($value -ge [long]::MinValue -and $value -le [ulong]::MaxValue) { return $text }
        return '"' + $text + '"'
    }

    static [string] Date([datetime] $value) {
        $invariant = [System.Globalization.CultureInfo]::InvariantCulture
        if ($value.Kind -eq 'Local') { $value = $value.ToUniversalTime() }
        $zone = if ($value.Kind -eq 'Utc') { 'Z' } else { '' }
        return '"' + $value.ToString("yyyy-MM-dd'T'HH:mm:ss.FFFFFFF", $invariant) + $zone + '"'
    }

    # The JSON of what has no members, or null.
    static [string] Scalar([object] $value, [string] $path) {
        if ($null -eq $value) { return 'null' }
        if ($value -is [string]) { return [Json]::Text($value, $path) }
        if ($value -is [bool]) { if ($value) { return 'true' }; return 'false' }
        $invariant = [System.Globalization.CultureInfo]::InvariantCulture
        if ($value -is [DBNull] -or $value -is [System.Management.Automation.Language.NullString]) { return 'null' }
        if ($value -is [char]) { return [Json]::Text([string]$value, $path) }
        if ($value -is [switch]) { return $(if ($value.IsPresent) { 'true' } else { 'false' }) }
        if ($value -is [enum]) {
            $name = $value.ToString()
            return $(if ($name -match '^-?\d') { $name } else { [Json]::Text($name, $path) })
        }
        if ($value -is [int] -or $value -is [long] -or $value -is [sbyte] -or $value -is [byte] -or $value -is [int16] -or
            $value -is [uint16] -or $value -is [uint32] -or $value -is [ulong]) { return $value.ToString($invariant) }
        if ($value -is [bigint]) { return [Json]::Integer($value) }
        if ($value -is [decimal]) { return [Json]::Decimal($value) }
        if ($value -is [double]) { return [Json]::Number($value, $value.ToString('R', $invariant)) }
        if ($value -is [float]) { return [Json]::Number([double]$value, $value.ToString('R', $invariant)) }
        if ($value -is [datetime]) { return [Json]::Date($value) }
        if ($value -is [DateTimeOffset]) { return '"' + $value.ToString("yyyy-MM-dd'T'HH:mm:ss.FFFFFFFzzz", $invariant) + '"' }
        if ($value -is [DateOnly]) { return '"' + $value.ToString('yyyy-MM-dd', $invariant) + '"' }
        if ($value -is [TimeOnly]) { return '"' + $value.ToString('HH:mm:ss.FFFFFFF', $invariant) + '"' }
        if ($value -is [timespan]) { return '"' + $value.ToString('c', $invariant) + '"' }
        if ($value -is [guid]) { return '"' + $value.ToString('D') + '"' }
        if ($value -is [securestring]) { return '{"$secret":"SecureString"}' }
        if ($value -is [pscredential]) { return '{"$secret":"PSCredential","username":' + [Json]::Text($value.UserName, $path) + '}' }
        if ($value -is [uri]) { return [Json]::Text($value.OriginalString, $path) }
        if ($value -is [xml]) { return [Json]::Text($value.OuterXml, $path) }
        if ($value -is [type]) { return [Json]::Text($value.FullName, $path) }
        if ($value -is [scriptblock] -or $value -is [version] -or $value -is [semver] -or $value -is [ipaddress] -or
            $value -is [mailaddress] -or $value -is [cultureinfo] -or $value -is [regex]) { return [Json]::Text($value.ToString(), $path) }
        if ($value -is [System.Text.Encoding]) { return [Json]::Text($value.WebName, $path) }
        if ($value -is [System.IO.FileSystemInfo]) { return [Json]::Text($value.FullName, $path) }
        if ($value -is [System.Management.Automation.ErrorRecord]) {
            return '{"message":' + [Json]::Message($value.ToString()) + ',"id":' + [Json]::Message($value.FullyQualifiedErrorId) +
                ',"category":' + [Json]::Message([string]$value.CategoryInfo.Category) + '}'
        }
        if ($value -is [Exception]) { return '{"type":' + [Json]::Message($value.GetType().FullName) + ',"message":' + [Json]::Message($value.Message) + '}' }
        return ''
    }

    static [string] Node([object] $value, [string] $path, [System.Collections.Generic.List[object]] $above) {
        $scalar = [Json]::Scalar($value, $path)
        if ($scalar -ne '') { return $scalar }
        foreach ($outer in $above) {
            if ([object]::ReferenceEquals($outer, $value)) { throw [FormatException]::new("${path}: the value contains itself") }
        }
        if ($above.Count -ge [Json]::MostLevels) { throw [FormatException]::new("${path}: more than $([Json]::MostLevels) levels") }
        $above.Add($value)
        try {
            if ($value -is [System.Collections.IDictionary]) { return [Json]::Table($value, $path, $above) }
            if ($value -is [System.Collections.IEnumerable]) { return [Json]::List($value, $path, $above) }
            return [Json]::Members($value, $path, $above)
        } finally { $above.RemoveAt($above.Count - 1) }
    }

    static [string] Table([System.Collections.IDictionary] $table, [string] $path, [System.Collections.Generic.List[object]] $above) {
        $invariant = [System.Globalization.CultureInfo]::InvariantCulture
        # A hashtable has no order of its own.
        $ordered = $table.GetType().Name -match 'Ordered'
        $parts = [System.Collections.Generic.List[string]]::new()
        $sorted = [System.Collections.Generic.SortedDictionary[string, string]]::new([StringComparer]::Ordinal)
        $seen = [System.Collections.Generic.HashSet[string]]::new([StringComparer]::Ordinal)
        foreach ($entry in $table.GetEnumerator()) {
            $key = $entry.Key
            $name = if ($key -is [IFormattable]) { $key.ToString($null, $invariant) } else { $key.ToString() }
            if (-not $seen.Add($name)) { throw [FormatException]::new("${path}: two keys have the text '$name'") }
            $member = [Json]::Text($name, $path) + ':' + [Json]::Node($entry.Value, "$path.$name", $above)
            if ($ordered) { $parts.Add($member) } else { $sorted.Add($name, $member) }
        }
        if (-not $ordered) { $parts.AddRange($sorted.Values) }
        return '{' + [string]::Join(',', $parts) + '}'
    }

    static [string] List([System.Collections.IEnumerable] $list, [string] $path, [System.Collections.Generic.List[object]] $above) {
        $parts = [System.Collections.Generic.List[string]]::new()
        if ($list -is [string[]]) {
            foreach ($item in $list) { $parts.Add($(if ($null -eq $item) { 'null' } else { [Json]::Text($item, "$path[$($parts.Count)]") })) }
        } else {
            foreach ($item in $list) { $parts.Add([Json]::Node($item, "$path[$($parts.Count)]", $above)) }
        }
        return '[' + [string]::Join(',', $parts) + ']'
    }

    static [hashtable] $DeclaredOf = @{}

    # The members with [DscProperty()]; null where a class has none and belongs to no resource.
    static [object] Declared([type] $type) {
        if (-not [Json]::DeclaredOf.ContainsKey($type)) {
            $all = $type.GetProperties([System.Reflection.BindingFlags]'Public,Instance')
            $found = @(foreach ($each in $all) { if ($each.IsDefined([System.Management.Automation.DscPropertyAttribute], $true)) { $each } })
            [Json]::DeclaredOf[$type] = if ($found.Count) { $found } else { $null }
        }
        return [Json]::DeclaredOf[$type]
    }

    # What a class or Select-Object declares; not what a type of .NET or a script computes, which may fail or take long.
    static [string] Members([object] $value, [string] $path, [System.Collections.Generic.List[object]] $above) {
        $parts = [System.Collections.Generic.List[string]]::new()
        if ($value -is [ciminstance]) {
            foreach ($property in $value.CimInstanceProperties) {
                $parts.Add([Json]::Text($property.Name, $path) + ':' + [Json]::Node($property.Value, "$path.$($property.Name)", $above))
            }
            return '{' + ($parts -join ',') + '}'
        }
        $kind = ''
        if ($value.psobject.BaseObject -is [System.Management.Automation.PSCustomObject]) { $kind = 'NoteProperty' }
        elseif ($value.GetType().Assembly.IsDynamic) { $kind = 'Property' }
        if ($kind -eq '') { throw [FormatException]::new("${path}: no JSON form for $($value.GetType())") }
        # Of a class with properties for resources these alone, hidden or not.
        if ($kind -eq 'Property') {
            $declared = [Json]::Declared($value.GetType())
            if ($null -ne $declared) {
                foreach ($own in $declared) { $parts.Add([Json]::Text($own.Name, $path) + ':' + [Json]::Node($own.GetValue($value), "$path.$($own.Name)", $above)) }
                return '{' + [string]::Join(',', $parts) + '}'
            }
        }
        foreach ($member in $value.psobject.Properties) {
            if ([string]$member.MemberType -ne $kind) { continue }
            $parts.Add([Json]::Text($member.Name, $path) + ':' + [Json]::Node($member.Value, "$path.$($member.Name)", $above))
        }
        return '{' + ($parts -join ',') + '}'
    }
}

# ---- the code that runs beside the resource, in its runspace --------------------------------------------------------

# An error that ends a statement would not end a resource without a 'try' around it. The mark shows that the script came
# to its end: 'exit' and a 'break' outside of a loop leave it without an error.

$loadModule = {
    param($path)
    # A module of the program itself has no file.
    if ($path.StartsWith('text:', [StringComparison]::Ordinal)) { return New-Module -ScriptBlock ([scriptblock]::Create($path.Substring(5))) }
    # A path is a pattern here.
    $loaded = @(Import-Module -Name ([WildcardPattern]::Escape($path)) -PassThru -DisableNameChecking -ErrorAction Stop)
    # Scripts to be processed may be among them.
    $loaded | Where-Object Path -ne $path
    $loaded | Where-Object Path -eq $path
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

$callClass = {
    param($type, $properties, $method, $mark, $shared)
    try {
        $object = $type::new()
        $declared = $type.GetProperties([System.Reflection.BindingFlags]'Public,Instance')
        foreach ($entry in $properties.GetEnumerator()) {
            $shared['Property'] = $entry.Key
            $name = $null
            foreach ($property in $declared) { if ($property.Name -eq $entry.Key) { $name = $property.Name; break } }
            if (-not $name) { throw [ArgumentException]::new("the resource has no property '$($entry.Key)'") }
            $object.$name = $entry.Value
        }
        $shared['Property'] = $null
        if ($method -ne 'Export') { $object.$method() }
        elseif ($type.GetMethod('Export', [type[]]@())) { $type::Export() }
        else { $type::Export($object) }
    } catch { throw }
    $mark
}

$callScript = {
    param($module, $properties, $method, $mark, $shared)
    try {
        $command = $module.ExportedCommands["$method-TargetResource"]
        if (-not $command) { throw [InvalidOperationException]::new("the module exports no command '$method-TargetResource'") }
        $arguments = @{}
        foreach ($entry in $properties.GetEnumerator()) {
            $shared['Property'] = $entry.Key
            $parameter = $command.Parameters.Values | Where-Object Name -eq $entry.Key
            if (-not $parameter) {
                # Get is given all properties and may declare the keys alone.
                if ($method -eq 'Get') { continue }
                throw [ArgumentException]::new("the resource has no property '$($entry.Key)'")
            }
            $value = $entry.Value
            if ($value -is [hashtable] -and $parameter.ParameterType -eq [ciminstance[]]) {
                if (-not $IsWindows) {
                    throw [NotSupportedException]::new("a table needs the cmdlet New-CimInstance here, which is not on this system")
                }
                $value = [ciminstance[]]@(foreach ($pair in $value.GetEnumerator()) {
                        CimCmdlets\New-CimInstance -ClientOnly -Namespace root/Microsoft/Windows/DesiredStateConfiguration -ClassName MSFT_KeyValuePair -Property @{ Key = "$($pair.Key)"; Value = "$($pair.Value)" }
                    })
            }
            $arguments[$parameter.Name] = $value
        }
        $shared['Property'] = $null
        & $command @arguments
    } catch { throw }
    $mark
}

# What a resource may change in its runspace, as it is after the import. Automatic variables are PowerShell's own.
$afterImport = {
    param($automatic)
    $variables = @{}
    foreach ($each in Get-Variable -Scope Global) {
        if ($each.Name -notin $automatic -and -not ([int]$each.Options -band 3)) { $variables[$each.Name] = $each.Value }
    }
    @{
        Variables = $variables; Automatic = [System.Collections.Generic.HashSet[string]]::new([string[]]$automatic, [StringComparer]::OrdinalIgnoreCase)
        Culture = [cultureinfo]::CurrentCulture; UICulture = [cultureinfo]::CurrentUICulture
        Defaults = $global:PSDefaultParameterValues.Clone()
    }
}
$automatic = '$', '?', '^', '_', 'args', 'ConsoleFileName', 'EnabledExperimentalFeatures', 'Error', 'ExecutionContext', 'foreach', 'HOME', 'Host', 'input',
    'LASTEXITCODE', 'Matches', 'MyInvocation', 'NestedPromptLevel', 'PID', 'PSBoundParameters', 'PSCmdlet', 'PSCommandPath', 'PSItem', 'PSScriptRoot',
    'ErrorActionPreference', 'VerbosePreference', 'DebugPreference', 'InformationPreference', 'WarningPreference', 'ProgressPreference',
    'ConfirmPreference', 'WhatIfPreference', 'PWD', 'sender', 'ShellId', 'StackTrace', 'switch', 'this', 'true', 'false', 'null', 'PSDefaultParameterValues', 'DSCMachineStatus'

# A call begins as the first one did, by the preferences that modules are written for: an error that a command reports ends
# nothing. Errors have a stream of their own, so that those that a resource caught or put away are none.
$callText = 'param($body, $target, $properties, $method, $mark, $shared, $verbose, $debug, $information)
    $global:Error.Clear()
    $global:LASTEXITCODE = 0
    $global:ErrorActionPreference = "Continue"
    $global:VerbosePreference = $verbose
    $global:DebugPreference = $debug
    $global:InformationPreference = $information
    $global:WarningPreference = "Continue"
    $global:ProgressPreference = "SilentlyContinue"
    $global:ConfirmPreference = "None"
    $global:WhatIfPreference = $false
    $after = $shared["AfterImport"]
    if ($after["Used"]) {
        # Looking at each variable takes longer than most calls: only where any is not as the last call found it.
        $all = @(Get-Variable -Scope Global)
        $values = [object[]]@($all.Count; $all.Value)
        if (-not [System.Collections.StructuralComparisons]::StructuralEqualityComparer.Equals($values, $after["Seen"])) {
            foreach ($each in $all) {
                $name = $each.Name
                # Read-only or constant.
                if ($after.Automatic.Contains($name) -or ([int]$each.Options -band 3)) { continue }
                if (-not $after.Variables.ContainsKey($name)) { $ExecutionContext.SessionState.PSVariable.Remove("global:$name") }
                elseif (-not [object]::ReferenceEquals($each.Value, $after.Variables[$name])) { try { $each.Value = $after.Variables[$name] } catch { } }
            }
            $all = @(Get-Variable -Scope Global)
            $after["Seen"] = [object[]]@($all.Count; $all.Value)
        }
        [cultureinfo]::CurrentCulture = $after.Culture
        [cultureinfo]::CurrentUICulture = $after.UICulture
        if ($global:PSDefaultParameterValues.Count -or $after.Defaults.Count) { $global:PSDefaultParameterValues = $after.Defaults.Clone() }
    }
    $after["Used"] = $true
    & $body $target $properties $method $mark $shared 3>&1 4>&1 5>&1 6>&1'

# ---- the state of the process -----------------------------------------------------------------------------------------

$folder = [Environment]::CurrentDirectory
$outputEncoding = [Console]::OutputEncoding
$modulePath = $env:PSModulePath

# The variables, and all of them in one text: whether any changed is asked after each call. One may be called 'Keys'.
function Get-Environment {
    $variables = [Environment]::GetEnvironmentVariables()
    $texts = [object[]]::new(2 * $variables.get_Count())
    $variables.get_Keys().CopyTo($texts, 0)
    $variables.get_Values().CopyTo($texts, $variables.get_Count())
    return @{ Variables = $variables; Text = [string]::Join([char]0, $texts) }
}

# What a call did to the process is undone, so that the next one starts as if it were alone: with the environment as
# it was when the process started or when the module was loaded.
function Restore-Process($environment) {
    if ([Environment]::CurrentDirectory -cne $folder) { [Environment]::CurrentDirectory = $folder }
    if (-not [object]::ReferenceEquals([Console]::OutputEncoding, $outputEncoding)) { [Console]::OutputEncoding = $outputEncoding }
    [cultureinfo]::DefaultThreadCurrentCulture = [cultureinfo]::DefaultThreadCurrentUICulture = $null
    $found = Get-Environment
    $process['Environment'] = $environment
    if ($found['Text'] -ceq $environment['Text']) { return }
    $now = $found['Variables']
    $then = $environment['Variables']
    # $null as a text would be "", which sets a variable to nothing and does not remove it.
    foreach ($name in @($now.get_Keys())) { if (-not $then.ContainsKey($name)) { [Environment]::SetEnvironmentVariable($name, [NullString]::Value) } }
    foreach ($name in @($then.get_Keys())) { if ($now[$name] -cne $then[$name]) { [Environment]::SetEnvironmentVariable($name, $then[$name]) } }
    # They have no order of their own.
    $environment['Text'] = (Get-Environment)['Text']
}

$atStart = Get-Environment
$process = @{ Environment = $atStart }

# ---- one runspace for a module ----------------------------------------------------------------------------------------

$runspaces = @{}

function Get-RunspaceKey($request) { return '{0}|{1}|{2}' -f $request['kind'], $request['module'], $request['resource'] }

function Open-ModuleRunspace($request) {
    $key = Get-RunspaceKey $request
    if ($runspaces.ContainsKey($key)) {
        $moduleRunspace = $runspaces[$key]
        if (-not [object]::ReferenceEquals($process['Environment'], $moduleRunspace['Environment'])) { Restore-Process $moduleRunspace['Environment'] }
        return $moduleRunspace
    }
    if (-not [object]::ReferenceEquals($process['Environment'], $atStart)) { Restore-Process $atStart }
    $state = [initialsessionstate]::CreateDefault2()
    if ($IsWindows) { $state.ExecutionPolicy = 'Bypass' }
    $runspace = [runspacefactory]::CreateRunspace($state)
    $runspace.ThreadOptions = 'ReuseThread'
    $runspace.Open()
    # For each new runspace PowerShell computes the path anew, with the directories of the user first.
    $own = $modulePath.Split([System.IO.Path]::PathSeparator)
    $computed = @($env:PSModulePath.Split([System.IO.Path]::PathSeparator) | Where-Object { $_ -notin $own })
    $env:PSModulePath = $modulePath
    $moduleRunspace = @{ Runspace = $runspace; Target = $null; Environment = $atStart; Shared = [hashtable]::Synchronized(@{}) }
    $runspaces[$key] = $moduleRunspace
    $module = Invoke-Here $runspace $loadModule @($request['module'])
    $moduleRunspace['Target'] = if ($request['kind'] -eq 'class') { Invoke-Here $runspace $findType @($module, $request['resource']) } else { $module }
    if ($null -eq $moduleRunspace['Target']) { throw [InvalidOperationException]::new("the module has no resource '$($request['resource'])'") }
    $body = if ($request['kind'] -eq 'class') { $callClass } else { $callScript }
    $moduleRunspace['Body'] = Invoke-Here $runspace '[scriptblock]::Create($args[0])' @($body.ToString())
    $moduleRunspace['Shared']['AfterImport'] = Invoke-Here $runspace $afterImport @(, $automatic)
    # What it set in the environment when it was loaded is its own, also what it added to the path, without what PowerShell adds.
    $paths = $env:PSModulePath.Split([System.IO.Path]::PathSeparator) | Where-Object { $_ -notin $computed }
    $env:PSModulePath = [string]::Join([System.IO.Path]::PathSeparator, @($paths))
    $moduleRunspace['Environment'] = $process['Environment'] = Get-Environment
    return $moduleRunspace
}

# The last object that a script gives in a runspace.
function Invoke-Here($runspace, $script, $arguments) {
    $shell = [powershell]::Create($runspace)
    try {
        [void]$shell.AddScript($script.ToString(), $true)
        foreach ($argument in $arguments) { [void]$shell.AddArgument($argument) }
        try { $found = $shell.Invoke() }
        finally {
            # An error of Import-Module ends its statement alone: the last one says why nothing came.
            foreach ($stream in $shell.Streams.Error, $shell.Streams.Warning, $shell.Streams.Information) { $during['Load'].AddRange($stream.ReadAll()) }
        }
        $last = if ($found.Count) { $found[$found.Count - 1] }
        if ($null -ne $last) { return $last.psobject.BaseObject }
    } finally { $shell.Dispose() }
}

function Close-ModuleRunspace($request) {
    $key = Get-RunspaceKey $request
    if ($runspaces.ContainsKey($key)) { $runspaces[$key]['Runspace'].Dispose(); $runspaces.Remove($key) }
}

# ---- one call -----------------------------------------------------------------------------------------------------------

# Load: what was reported while a module was loaded. Reported: the errors that the resource reported and went on from.
$during = @{ Step = 'start'; Load = [System.Collections.Generic.List[object]]::new(); Reported = [System.Collections.Generic.List[object]]::new(); More = 0 }
$mark = [WeakReference]::new($null)
$mostReported = 100

function Send([string] $line) {
    $writer.WriteLine($line)
    $writer.Flush()
}

# How much of the streams is sent: each level has those before it.
$levels = @{ none = 0; information = 1; verbose = 2; debug = 3 }

function Send-Record([string] $id, $record, [int] $level) {
    $stream = ''
    $text = ''
    $of = 0
    if ($record -is [System.Management.Automation.VerboseRecord]) { $stream = 'verbose'; $of = 2; $text = $record.Message }
    elseif ($record -is [System.Management.Automation.WarningRecord]) { $stream = 'warning'; $text = $record.Message }
    elseif ($record -is [System.Management.Automation.DebugRecord]) { $stream = 'debug'; $of = 3; $text = $record.Message }
    elseif ($record -is [System.Management.Automation.InformationRecord]) { $stream = 'information'; $of = 1; $text = "$($record.MessageData)" }
    elseif ($record -is [System.Management.Automation.ErrorRecord]) {
        # What a program of the system writes to its standard error is text, not a failure.
        if (Test-NativeText $record) { $stream = 'information'; $of = 1 } else { $stream = 'error' }
        $text = "$record"
    }
    if ($stream -eq '') { return $false }
    # Flushed together: whoever reads them has no use for each alone.
    if ($of -le $level) { $writer.WriteLine('{"id":"' + $id + '","stream":"' + $stream + '","message":' + [Json]::Message($text) + '}') }
    return $true
}

function Test-NativeText($record) { $record.FullyQualifiedErrorId -like 'NativeCommandError*' }

# An error that a command reported, and after which the resource went on.
function Send-Reported([string] $id, $record, [int] $level) {
    [void](Send-Record $id $record $level)
    if (Test-NativeText $record) { return }
    if ($during['Reported'].Count -lt $mostReported) { $during['Reported'].Add($record) } else { $during['More']++ }
}

function Send-Output([string] $id, $value) {
    $type = if ($null -eq $value) { '' } else { $value.GetType().ToString() }
    $head = '{"id":"' + $id + '","type":' + [Json]::Message($type)
    try { $json = [Json]::Of($value) }
    catch {
        Send ($head + ',"refused":' + [Json]::Message($_.Exception.GetBaseException().Message) + '}')
        return
    }
    Send ($head + ',"output":' + $json + '}')
}

function Invoke-Method($request, $moduleRunspace) {
    $id = $request['id']
    $level = $levels[$request['records']]
    $shared = $moduleRunspace['Shared']
    $shared['Property'] = $null
    $shell = [powershell]::Create($moduleRunspace['Runspace'])
    # In a scope of its own: what a resource sees of it are the preferences.
    [void]$shell.AddScript($callText, $true).AddArgument($moduleRunspace['Body']).AddArgument($moduleRunspace['Target']).AddArgument($request['properties'])
    [void]$shell.AddArgument($request['method']).AddArgument($mark).AddArgument($shared)
    foreach ($of in 2, 3, 1) { [void]$shell.AddArgument($(if ($level -ge $of) { 'Continue' } else { 'SilentlyContinue' })) }
    $output = [System.Management.Automation.PSDataCollection[psobject]]::new()
    $ended = $false
    try {
        $running = $shell.BeginInvoke([System.Management.Automation.PSDataCollection[psobject]]$null, $output)
        do {
            $done = $running.AsyncWaitHandle.WaitOne(20)
            foreach ($item in $output.ReadAll()) {
                # Assignments: an 'if' as a value takes arrays apart.
                $value = $null
                if ($null -ne $item) { $value = $item.psobject.BaseObject }
                if ([object]::ReferenceEquals($value, $mark)) { $ended = $true; continue }
                if (Send-Record $id $value $level) { continue }
                if ($value -is [System.Management.Automation.PSCustomObject]) { $value = $item }
                Send-Output $id $value
            }
            # An error among the objects is one that the resource caught.
            if ($shell.Streams.Error.Count) { foreach ($item in $shell.Streams.Error.ReadAll()) { Send-Reported $id $item $level } }
            $writer.Flush()
            # Whoever asked is gone.
            if (-not $done -and $socket.Poll(0, 'SelectRead') -and $socket.Available -eq 0) { [Environment]::Exit(3) }
        } until ($done)
        [void]$shell.EndInvoke($running)
    } finally { $shell.Dispose() }
    return $ended
}

function ConvertTo-Flag([bool] $value) { if ($value) { 'true' } else { 'false' } }

function Test-Restart($session) { try { [bool]($session.GetVariable('DSCMachineStatus') -eq 1) } catch { $false } }

function Invoke-Request($request) {
    $id = $request['id']
    $during['Step'] = 'load'
    $during['Load'].Clear()
    $during['Reported'].Clear()
    $during['More'] = 0
    $moduleRunspace = Open-ModuleRunspace $request
    # What a module reports when it is loaded is shown, and fails nothing.
    foreach ($record in $during['Load']) { [void](Send-Record $id $record $levels[$request['records']]) }
    $during['Load'].Clear()
    $during['Step'] = 'call'
    $session = $moduleRunspace['Runspace'].SessionStateProxy
    $directory = $request['directory']
    if ($directory -cne $folder) { [Environment]::CurrentDirectory = $directory }
    # A path is a pattern here.
    if ($session.Path.CurrentLocation.Path -cne $directory) { [void]$session.Path.SetLocation([WildcardPattern]::Escape($directory)) }
    $session.SetVariable('DSCMachineStatus', $null)
    $ended = Invoke-Method $request $moduleRunspace
    # A change that went on after errors came to its end, and is not made.
    if ($ended -and $during['Reported'].Count -and $request['method'] -in 'Set', 'Delete') {
        Send-Failure $request $during['Reported'][0] (Join-Reported)
        return
    }
    $flags = '"ended":' + (ConvertTo-Flag $ended) + ',"reboot":' + (ConvertTo-Flag (Test-Restart $session))
    Send ('{"id":"' + $id + '","done":{' + $flags + '}}')
}

function Join-Reported {
    $reported = $during['Reported']
    if ($reported.Count -eq 1) { return "$($reported[0])" }
    $count = $reported.Count + $during['More']
    $texts = @(foreach ($record in $reported) { "$record" })
    if ($during['More']) { $texts += "and $($during['More']) more" }
    return "$count errors: $([string]::Join('; ', $texts))"
}

# The record of an error that the resource raised: the innermost one that PowerShell did not make of another.
function Get-Cause($record) {
    $exception = $record.Exception
    while ($exception.InnerException -and $exception -is [System.Management.Automation.MethodInvocationException]) { $exception = $exception.InnerException }
    # Its own record knows less than the one that it came with.
    if ([object]::ReferenceEquals($exception, $record.Exception)) { return $record, $exception }
    if ($exception -is [System.Management.Automation.IContainsErrorRecord]) { return $exception.ErrorRecord, $exception }
    return $record, $exception
}

# File and line of an error. Of one that a module throws while it is loaded, the stack alone has them.
function Get-Place($record) {
    $called = $record.InvocationInfo
    if ($called -and $called.ScriptName) { return "$($called.ScriptName):$($called.ScriptLineNumber)" }
    if ([string]$record.ScriptStackTrace -match ', (?<file>/.+|[A-Za-z]:.+): line (?<line>\d+)') { return "$($Matches.file):$($Matches.line)" }
    return ''
}

function Send-Failure($request, $record, $text) {
    $cause, $exception = if ($text) { $record, $record.Exception } else { Get-Cause $record }
    if (-not $text) { $text = "$cause" }
    $moduleRunspace = $runspaces[(Get-RunspaceKey $request)]
    $property = ''
    $reboot = $false
    # A request for a restart counts though the method failed after it.
    if ($moduleRunspace -and $during['Step'] -eq 'call') {
        $property = [string]$moduleRunspace['Shared']['Property']
        $reboot = Test-Restart $moduleRunspace['Runspace'].SessionStateProxy
    }
    $at = Get-Place $cause
    $line = '{"id":"' + $request['id'] + '","error":{"id":' + [Json]::Message($cause.FullyQualifiedErrorId)
    $line += ',"category":' + [Json]::Message([string]$cause.CategoryInfo.Category) + ',"type":' + [Json]::Message($exception.GetType().FullName)
    $line += ',"message":' + [Json]::Message($text) + ',"at":' + [Json]::Message($at)
    $line += ',"during":' + [Json]::Message($during['Step']) + ',"property":' + [Json]::Message($property)
    $line += ',"reboot":' + (ConvertTo-Flag $reboot) + '}}'
    Send $line
}

# Where a module gave nothing, the last error that was reported says why.
function Get-LoadError($record) {
    $errors = @($during['Load'] | Where-Object { $_ -is [System.Management.Automation.ErrorRecord] })
    if ($during['Step'] -eq 'load' -and $errors.Count -and $record.Exception -is [InvalidOperationException]) { return $errors[-1] }
    return $record
}

# ---- the loop -----------------------------------------------------------------------------------------------------------

$options = [System.Text.Json.JsonDocumentOptions]::new()
$options.MaxDepth = 512
Send ('{"id":"0","hello":{"protocol":1,"version":"' + $PSVersionTable.PSVersion + '","edition":"' + $PSVersionTable.PSEdition + '","home":' + [Json]::Text($PSHOME, '$') + '}}')
while ($null -ne ($line = $reader.ReadLine())) {
    $request = @{}
    $document = [System.Text.Json.JsonDocument]::Parse($line, $options)
    try {
        [Wire]::Fill($request, $document.RootElement)
        Invoke-Request $request
    }
    catch {
        Send-Failure $request (Get-LoadError $_)
        # A module that failed in the middle starts anew.
        Close-ModuleRunspace $request
    }
    finally { $document.Dispose() }
    # The call is answered; for another one this process is of no use.
    try {
        $moduleRunspace = $runspaces[(Get-RunspaceKey $request)]
        if ($moduleRunspace) {
            Restore-Process $moduleRunspace['Environment']
            $moduleRunspace['Runspace'].SessionStateProxy.PSVariable.Remove('DSCMachineStatus')
        } else { Restore-Process $atStart }
    } catch { [Environment]::Exit(4) }
}
# Threads of a resource would keep the process.
[Environment]::Exit(0)
