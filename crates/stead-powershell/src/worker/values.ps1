<#
Values as JSON and back. Reading this takes a while, so that it is done once a value needs it: most tests have texts and a verdict.
#>
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

@{ Wire = [Wire]; Json = [Json] }
