# Invoke-DscResource and Get-DscResource with the parameters that those of PSDesiredStateConfiguration have, carried out by
# the program stead: $env:STEAD names it, else it is looked for in PATH.
#
# One `stead serve` answers all calls of the process, from whatever runspace. What the runspaces share are objects of .NET alone:
# whoever waits for an answer reads, one at a time, and hands to others what is theirs.

using namespace System.Collections.Concurrent
using namespace System.Management.Automation
using namespace System.Threading

class InvokeDscResourceTestResult {
    [bool] $InDesiredState
}

class InvokeDscResourceSetResult {
    [bool] $RebootRequired
}

class DscResourcePropertyInfo {
    [string] $Name
    [string] $PropertyType
    [bool] $IsMandatory
    [string[]] $Values
}

# A resource as the program lists it. .NET makes them of its answer, in a tenth of the time that a script takes.
class ListedResource {
    [string] $type
    [string] $version
    [string] $path
    [string] $directory
    [string] $implementedAs
    [string] $author
    [string] $company
    [string] $guid
    [DscResourcePropertyInfo[]] $declared
}

class ListedResources {
    [ListedResource[]] $resources
}

$adapter = 'Microsoft.Adapter/PowerShell'
$utf8 = [System.Text.UTF8Encoding]::new($false)
$deep = [System.Text.Json.JsonDocumentOptions]@{ MaxDepth = 512 }
$options = [System.Text.Json.JsonSerializerOptions]::new()
$found = @{ For = ''; Program = '' }
$completed = @{ At = [datetime]::MinValue; Resources = @() }
$loneSurrogate = [regex]::new('(?<![\ud800-\udbff])[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])')
# A longer request would end the program, for all runspaces.
$longestRequest = 16MB - 16
# How long a program that was started may take to say hello, in seconds.
$patience = 30

# ---- the program ------------------------------------------------------------------------------------------------------

function Deny-Call([string] $Id, [Exception] $Exception, [ErrorCategory] $Category, $Target) {
    throw [ErrorRecord]::new($Exception, $Id, $Category, $Target)
}

function Get-Program {
    $for = "$env:STEAD`n$env:PATH"
    if ($found.For -ceq $for) { return $found.Program }
    $program = $env:STEAD
    if (-not $program) { $program = (Get-Command -Name stead -CommandType Application -TotalCount 1 -ErrorAction Ignore).Source }
    # A command that is not loaded would have PowerShell analyse the modules of the whole path.
    if ($program) { $program = [System.IO.Path]::GetFullPath($program, $ExecutionContext.SessionState.Path.CurrentFileSystemLocation.ProviderPath) }
    if (-not [System.IO.File]::Exists($program)) {
        $message = if ($program) { "there is no program '$program', which `$env:STEAD names" } else { 'the program stead is not in PATH; $env:STEAD can name it' }
        Deny-Call 'ProgramNotFound,Stead' ([System.IO.FileNotFoundException]::new($message)) -Category 'ResourceUnavailable' -Target $program
    }
    $found.For = $for
    $found.Program = $program
    return $program
}

# Everything that the program inherits but the path of modules, which each request names.
function Get-Inherited {
    $variables = [Environment]::GetEnvironmentVariables()
    $variables.Remove('PSModulePath')
    $texts = [object[]]::new(2 * $variables.get_Count())
    $variables.get_Keys().CopyTo($texts, 0)
    $variables.get_Values().CopyTo($texts, $variables.get_Count())
    return [string]::Join([char]0, $texts)
}

# Registers a call with the program that all runspaces of this process ask. Another one is started where it ended, and where the
# environment is another. Who registers, leaves and closes does so under one lock: a program that is to end takes no more calls.
function Enter-Server($Call) {
    $program = Get-Program
    $inherited = Get-Inherited
    $process = [AppDomain]::CurrentDomain
    $isLocked = $false
    try {
        while (-not $isLocked) { $isLocked = [Monitor]::TryEnter($process, 200) }
        $server = $process.GetData('Stead.Server')
        $runs = $server -and -not $server.Ended -and -not $server.Process.HasExited
        if (-not $runs -or $server.Program -cne $program -or $server.Inherited -cne $inherited) {
            if ($server) { Close-Server $server }
            $process.SetData('Stead.Server', $null)
            $server = Open-Server $program $inherited
            $process.SetData('Stead.Server', $server)
        }
        $Call.Server = $server
        $server.Waiting[$Call.Id] = $Call
    }
    finally { if ($isLocked) { [Monitor]::Exit($process) } }
}

function Open-Server([string] $Program, [string] $Inherited) {
    $start = [System.Diagnostics.ProcessStartInfo]::new($Program)
    foreach ($argument in 'serve', '--stdio') { $start.ArgumentList.Add($argument) }
    # Each request names its own directory: this one is not kept busy.
    $start.WorkingDirectory = [System.IO.Path]::GetPathRoot($PSHOME)
    $start.UseShellExecute = $false
    $start.RedirectStandardInput = $start.RedirectStandardOutput = $start.RedirectStandardError = $true
    $start.StandardInputEncoding = $start.StandardOutputEncoding = $start.StandardErrorEncoding = $utf8
    $running = $null
    $isGreeted = $false
    $why = ''
    try {
        $running = [System.Diagnostics.Process]::Start($start)
        $server = [hashtable]::Synchronized(@{
                Program = $Program; Inherited = $Inherited; Process = $running; Input = $running.StandardInput; Output = $running.StandardOutput
                Errors = $running.StandardError.ReadToEndAsync(); Waiting = [ConcurrentDictionary[string, object]]::new()
                Turn = [AutoResetEvent]::new($true); Reading = $null; Ended = $false; Retired = $false; Why = ''
            })
        $server.Input.WriteLine('{"jsonrpc":"2.0","id":"0","method":"initialize","params":{"protocol":1}}')
        $server.Input.Flush()
        $reading = $server.Output.ReadLineAsync()
        $until = [datetime]::UtcNow.AddSeconds($patience)
        # In short waits, between which the pipeline can be stopped.
        while (-not $reading.Wait(100) -and [datetime]::UtcNow -lt $until) { }
        $isGreeted = $reading.IsCompletedSuccessfully -and "$($reading.Result)".Contains('"result"')
        if ($isGreeted) { return $server }
        $why = if (-not $reading.IsCompleted) { "it said nothing within $patience seconds" } elseif ($reading.Result) { $reading.Result } else { Get-Said $server }
    }
    # It cannot be started, or has ended before it read anything.
    catch [ComponentModel.Win32Exception], [System.IO.IOException] { $why = $_.Exception.GetBaseException().Message }
    finally {
        if ($running -and -not $isGreeted) {
            try { $running.Kill($true) } catch { $isGreeted = $false }
            $running.Dispose()
        }
    }
    Deny-Call 'ProgramNotUnderstood,Stead' ([InvalidOperationException]::new("'$Program serve' does not answer: $why")) -Category 'ProtocolError' -Target $Program
}

# What a program that ended has on standard error, unless another one that it started keeps that open.
function Get-Said($Server) {
    if ($Server.Errors.Wait(1000)) { return $Server.Errors.Result.Trim() }
    return ''
}

# Has it end, which the end of its input does, as soon as nobody waits for it.
function Close-Server($Server) {
    $Server.Retired = $true
    if ($Server.Waiting.IsEmpty) { try { $Server.Input.Close() } catch [System.IO.IOException] { $Server.Ended = $true } }
}

$ExecutionContext.SessionState.Module.OnRemove = {
    if ($formerExpansion -and [object]::ReferenceEquals($function:global:TabExpansion2, $ownExpansion)) { $function:global:TabExpansion2 = $formerExpansion }
    $process = [AppDomain]::CurrentDomain
    [Monitor]::Enter($process)
    try {
        $server = $process.GetData('Stead.Server')
        $process.SetData('Stead.Server', $null)
        if ($server) { Close-Server $server }
    }
    finally { [Monitor]::Exit($process) }
}

# The text of a request, in one line.
function ConvertTo-Request([string] $Id, [string] $Called, [System.Collections.IDictionary] $Parameters) {
    $Parameters['directory'] = $ExecutionContext.SessionState.Path.CurrentFileSystemLocation.ProviderPath
    if ($env:PSModulePath) { $Parameters['modulePath'] = $env:PSModulePath }
    $request = @{ jsonrpc = '2.0'; id = $Id; method = $Called; params = $Parameters }
    # What is nested deeper would be cut off with a warning.
    $text = ConvertTo-Json -InputObject $request -Depth 100 -Compress -WarningAction Stop
    if ($loneSurrogate.IsMatch($text)) {
        Deny-Call 'NotUnicode,Stead' ([ArgumentException]::new('the properties hold a text that is not valid Unicode: half of a surrogate pair')) -Category 'InvalidArgument' -Target $Called
    }
    $length = $utf8.GetByteCount($text)
    if ($length -gt $longestRequest) {
        Deny-Call 'RequestTooLong,Stead' ([ArgumentException]::new("the call has $length bytes as JSON, more than $longestRequest")) -Category 'LimitsExceeded' -Target $Called
    }
    return $text
}

# The result of a request, as an element of JSON, or its error; $said takes what the resource says meanwhile.
#
# What must happen though the pipeline is stopped (Ctrl+C) is in 'finally', and calls .NET alone: there are no commands then.
function Invoke-Request([string] $Called, [System.Collections.IDictionary] $Parameters, [scriptblock] $Said) {
    $id = [guid]::NewGuid().ToString('N')
    $text = ConvertTo-Request $id $Called -Parameters $Parameters
    $waiter = @{ Id = $id; Server = $null; Messages = [ConcurrentQueue[object]]::new(); Signal = [AutoResetEvent]::new($false) }
    $isAnswered = $false
    try {
        Enter-Server $waiter
        $server = $waiter.Server
        Send-Line $server $text
        while ($true) {
            $message = $null
            while ($waiter.Messages.TryDequeue([ref] $message)) {
                $answer = $message.RootElement
                $part = [System.Text.Json.JsonElement]::new()
                if ($answer.TryGetProperty('params', [ref] $part)) {
                    $level = [System.Text.Json.JsonElement]::new()
                    if ($part.TryGetProperty('level', [ref] $level)) { & $Said $level.GetString() $part.GetProperty('message').GetString() }
                    else { & $Said 'progress' $part }
                    continue
                }
                if ($answer.GetProperty('id').ValueKind -eq 'Null') {
                    $why = if ($answer.TryGetProperty('error', [ref] $part)) { $part.GetProperty('message').GetString() } else { 'it names no request' }
                    Deny-Call 'ProgramNotUnderstood,Stead' ([InvalidOperationException]::new("stead did not understand a request: $why")) -Category 'ProtocolError' -Target $server.Program
                }
                $isAnswered = $true
                return $answer
            }
            if ($server.Ended) {
                $why = if ($server.Why) { $server.Why } else { "stead ended with exit code $($server.Process.ExitCode) before it answered. $(Get-Said $server)" }
                Deny-Call 'ProgramEnded,Stead' ([InvalidOperationException]::new($why.Trim())) -Category 'ResourceUnavailable' -Target $server.Program
            }
            Read-Answer $server $waiter
        }
    }
    finally {
        $server = $waiter.Server
        if ($server) {
            if (-not $isAnswered -and -not $server.Ended) {
                [Monitor]::Enter($server.Input)
                try {
                    $server.Input.WriteLine('{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"' + $id + '"}}')
                    $server.Input.Flush()
                }
                catch { $server.Ended = $true }
                finally { [Monitor]::Exit($server.Input) }
            }
            $process = [AppDomain]::CurrentDomain
            [Monitor]::Enter($process)
            try {
                $left = $null
                [void] $server.Waiting.TryRemove($id, [ref] $left)
                if ($server.Retired -and $server.Waiting.IsEmpty) { try { $server.Input.Close() } catch { $server.Ended = $true } }
            }
            finally { [Monitor]::Exit($process) }
        }
        $waiter.Signal.Dispose()
    }
}

function Send-Line($Server, [string] $Text) {
    [Monitor]::Enter($Server.Input)
    try {
        $Server.Input.WriteLine($Text)
        $Server.Input.Flush()
    }
    # Who waits for its answer says why it ended.
    catch [System.IO.IOException] { $Server.Ended = $Server.Process.WaitForExit(5000) }
    finally { [Monitor]::Exit($Server.Input) }
}

# Waits a moment for a message to this waiter, or reads one for whoever it is for.
function Read-Answer($Server, $Waiter) {
    $which = -1
    $reading = $null
    try {
        $which = [WaitHandle]::WaitAny([WaitHandle[]]@($Waiter.Signal, $Server.Turn), 200)
        if ($which -eq 1) {
            if ($null -eq $Server.Reading) { $Server.Reading = $Server.Output.ReadLineAsync() }
            if ($Server.Reading.Wait(200)) { $reading = $Server.Reading }
        }
    }
    finally {
        try {
            if ($reading) {
                $Server.Reading = $null
                $message = $null
                $line = if ($reading.IsCompletedSuccessfully) { $reading.Result }
                try { if ($null -ne $line) { $message = [System.Text.Json.JsonDocument]::Parse($line, $deep) } }
                catch [System.Text.Json.JsonException] {
                    # Whose answer it was to be nobody knows, nor what comes behind it.
                    $Server.Why = 'stead answered what is not JSON'
                    $Server.Process.Kill()
                }
                if ($null -eq $message) {
                    [void] $Server.Process.WaitForExit(5000)
                    $Server.Ended = $true
                }
                else {
                    $of = [System.Text.Json.JsonElement]::new()
                    $from = $message.RootElement
                    if ($from.TryGetProperty('params', [ref] $of)) { $from = $of }
                    $to = $null
                    $all = @()
                    if ($from.TryGetProperty('id', [ref] $of)) {
                        # An answer to a line that was not understood: nobody knows whose that was.
                        if ($of.ValueKind -eq 'Null') { $all = $Server.Waiting.get_Values() }
                        elseif ($Server.Waiting.TryGetValue($of.ToString(), [ref] $to)) { $all = @($to) }
                    }
                    foreach ($one in $all) {
                        $one.Messages.Enqueue($message)
                        try { [void] $one.Signal.Set() } catch [ObjectDisposedException] { $to = $null }
                    }
                }
            }
        }
        finally { if ($which -eq 1) { [void] $Server.Turn.Set() } }
    }
}

# ---- values ------------------------------------------------------------------------------------------------------------

# A value as JSON can hold it; secrets are marked as such. What PowerShell would make a text of for a [string] becomes one.
function ConvertTo-Plain($Value, [int] $Level = 0) {
    if ($Level -gt 64) {
        Deny-Call 'PropertyTooDeep,Invoke-DscResource' ([ArgumentException]::new('the properties contain themselves, or have more than 64 levels')) -Category 'InvalidArgument' -Target $null
    }
    if ($null -eq $Value -or $Value -is [string] -or $Value -is [bool]) { return $Value }
    if ($Value -is [System.Management.Automation.PSCustomObject]) {
        $table = [ordered]@{}
        foreach ($member in $Value.psobject.Properties) { $table[$member.Name] = ConvertTo-Plain $member.Value ($Level + 1) }
        return $table
    }
    # What was added to a number is not a part of it.
    $Value = $Value.psobject.BaseObject
    if ($Value -is [pscredential]) {
        $password = if ($Value.Password) { [System.Net.NetworkCredential]::new('', $Value.Password).Password } else { '' }
        return @{ username = "$($Value.UserName)"; password = @{ secureString = $password } }
    }
    if ($Value -is [securestring]) { return @{ secureString = [System.Net.NetworkCredential]::new('', $Value).Password } }
    if ($Value -is [System.Collections.IDictionary]) {
        $table = [ordered]@{}
        foreach ($entry in $Value.GetEnumerator()) { $table["$($entry.Key)"] = ConvertTo-Plain $entry.Value ($Level + 1) }
        return $table
    }
    if ($Value -is [System.Xml.XmlNode]) { return $Value.OuterXml }
    if ($Value -is [System.Collections.IEnumerable] -and $Value -isnot [string]) {
        $items = [System.Collections.Generic.List[object]]::new()
        foreach ($item in $Value) { $items.Add((ConvertTo-Plain $item ($Level + 1))) }
        return , $items.ToArray()
    }
    if ($Value -is [datetime] -or $Value -is [DateTimeOffset]) { return $Value.ToString('o', [cultureinfo]::InvariantCulture) }
    if ($Value -is [switch]) { return $Value.IsPresent }
    if ($Value -is [System.IO.FileSystemInfo]) { return $Value.FullName }
    if ($Value -is [ValueType] -and $Value.GetType().IsPrimitive -or $Value -is [decimal] -or $Value -is [bigint]) {
        if ($Value -is [char]) { return "$Value" }
        return $Value
    }
    return "$Value"
}

# A value of a state. A text stays a text, whatever it looks like.
function ConvertFrom-Element([System.Text.Json.JsonElement] $Element) {
    switch ($Element.ValueKind) {
        'Object' {
            $table = [ordered]@{}
            foreach ($member in $Element.EnumerateObject()) {
                # Names that differ in case alone.
                if ($table.Contains($member.Name)) {
                    $exact = [System.Collections.Specialized.OrderedDictionary]::new([StringComparer]::Ordinal)
                    foreach ($entry in $table.GetEnumerator()) { $exact[$entry.Key] = $entry.Value }
                    $table = $exact
                }
                $table[$member.Name] = ConvertFrom-Element $member.Value
            }
            return $table
        }
        'Array' {
            $items = [object[]]::new($Element.GetArrayLength())
            $index = 0
            foreach ($item in $Element.EnumerateArray()) { $items[$index++] = ConvertFrom-Element $item }
            return , $items
        }
        'String' { return $Element.GetString() }
        'True' { return $true }
        'False' { return $false }
        'Number' {
            $whole = [long] 0
            if ($Element.TryGetInt64([ref] $whole)) { return $whole }
            $natural = [ulong] 0
            if ($Element.TryGetUInt64([ref] $natural)) { return $natural }
            return $Element.GetDouble()
        }
    }
    return $null
}

# A value in the type that its property has.
function ConvertTo-Declared($Value, [string] $Type) {
    if ($null -eq $Value) { return $null }
    if ($Type.EndsWith('[]')) {
        $of = $Type.Substring(0, $Type.Length - 2)
        $items = [System.Collections.Generic.List[object]]::new()
        foreach ($item in $Value) { $items.Add((ConvertTo-Declared $item $of)) }
        $typed = $items.ToArray() -as ([type] $Type)
        if ($null -eq $typed) { return , $Value }
        return , $typed
    }
    $typed = switch ($Type) {
        'datetime' { [datetime]::Parse($Value, [cultureinfo]::InvariantCulture, [System.Globalization.DateTimeStyles]::RoundtripKind) }
        'scriptblock' { [scriptblock]::Create($Value) }
        default { $Value -as ([type] $Type) }
    }
    if ($null -eq $typed) { return $Value }
    return $typed
}

function ConvertTo-State([System.Text.Json.JsonElement] $Result) {
    $state = ConvertFrom-Element $Result.GetProperty('state')
    foreach ($member in $Result.GetProperty('types').EnumerateObject()) {
        if ($state -is [System.Collections.IDictionary] -and $state.Contains($member.Name)) {
            $state[$member.Name] = ConvertTo-Declared $state[$member.Name] $member.Value.GetString()
        }
    }
    return $state
}

# The exception that the resource had, with those within it, as far as this process has their types.
function ConvertTo-Exception($Data, [string] $Message) {
    [Exception] $exception = $null
    $chain = @($Data['exceptions'])
    for ($index = $chain.Length - 1; $index -ge 0; $index--) {
        if ($null -eq $chain[$index]) { continue }
        $type = $chain[$index]['type'] -as [type]
        [string] $text = $chain[$index]['message']
        $maker = $null
        if ($type -and [Exception].IsAssignableFrom($type) -and -not $type.IsAbstract) { $maker = $type.GetConstructor([type[]]@([string], [Exception])) }
        [Exception] $made = $null
        # Some want one within them.
        if ($maker) { try { $made = $maker.Invoke([object[]]@($text, $exception)) } catch { $global:Error.RemoveAt(0) } }
        $exception = if ($made) { $made } else { [RuntimeException]::new($text, $exception) }
    }
    if ($exception) { return $exception }
    if ($Data['category'] -eq 'InvalidArgument') { return [ArgumentException]::new($Message) }
    return [InvalidOperationException]::new($Message)
}

# The one record of an error, with the id of the resource, its category, exceptions, stack and place.
function ConvertTo-ErrorRecord([System.Text.Json.JsonElement] $Element, $Target) {
    $problem = ConvertFrom-Element $Element
    $data = if ($problem['data']) { $problem['data'] } else { @{} }
    $category = [ErrorCategory]::NotSpecified
    [void] [Enum]::TryParse([string] $data['category'], [ref] $category)
    $id = if ($data['id']) { $data['id'] } else { 'ResourceFailed,Invoke-DscResource' }
    $record = [ErrorRecord]::new((ConvertTo-Exception $data $problem['message']), $id, $category, $Target)
    if ($record.Exception.Message -cne $problem['message']) { $record.ErrorDetails = [ErrorDetails]::new($problem['message']) }
    if ($data['help']) {
        if (-not $record.ErrorDetails) { $record.ErrorDetails = [ErrorDetails]::new($problem['message']) }
        $record.ErrorDetails.RecommendedAction = $data['help']
    }
    foreach ($name in 'stack', 'place') { if ($data[$name]) { $record.Exception.Data[$name] = $data[$name] } }
    return $record
}

# How far an activity is, as the resource said it. 'Write-Progress -Completed' names none, and a record cannot be made without one.
function ConvertTo-ProgressRecord([System.Text.Json.JsonElement] $Element) {
    $activity, $status = foreach ($name in 'activity', 'status') {
        $text = $Element.GetProperty($name).GetString()
        if ($text) { $text } else { ' ' }
    }
    $record = [ProgressRecord]::new($Element.GetProperty('activityId').GetInt32(), $activity, $status)
    $record.ParentActivityId = $Element.GetProperty('parentId').GetInt32()
    $record.CurrentOperation = $Element.GetProperty('operation').GetString()
    $record.PercentComplete = $Element.GetProperty('percent').GetInt32()
    $record.SecondsRemaining = $Element.GetProperty('secondsLeft').GetInt32()
    if ($Element.GetProperty('isOver').GetBoolean()) { $record.RecordType = 'Completed' }
    return $record
}

# The parts of a module specification that the program decides by.
function ConvertTo-Limit([Microsoft.PowerShell.Commands.ModuleSpecification] $Specification) {
    $limits = @{ name = $Specification.Name }
    if ($Specification.RequiredVersion) { $limits['version'] = "$($Specification.RequiredVersion)" }
    if ($Specification.Version) { $limits['minimum'] = "$($Specification.Version)" }
    if ($Specification.MaximumVersion) { $limits['maximum'] = $Specification.MaximumVersion }
    if ($Specification.Guid) { $limits['guid'] = "$($Specification.Guid)" }
    return $limits
}

# ---- commands ----------------------------------------------------------------------------------------------------------

# The identifier of this error has the name of this function.
function CheckResourceFound {
    [CmdletBinding()]
    param([string] $Message)
    Write-Error -Message $Message
}

# The resources of PowerShell modules, as the program lists them: all, or those of a module.
function Get-Listed([Microsoft.PowerShell.Commands.ModuleSpecification] $Module) {
    $parameters = @{ adapter = $adapter }
    if ($Module) { $parameters['module'] = ConvertTo-Limit $Module }
    $isPattern = $Module -and [WildcardPattern]::ContainsWildcardCharacters($Module.Name)
    if ($isPattern) { $parameters['module'].name = '*' }
    $answer = Invoke-Request 'list' $parameters -Said { }
    $result = [System.Text.Json.JsonElement]::new()
    if (-not $answer.TryGetProperty('result', [ref] $result)) { throw (ConvertTo-ErrorRecord $answer.GetProperty('error') $Module) }
    $listed = [System.Text.Json.JsonSerializer]::Deserialize($result, [ListedResources], $options).resources
    if (-not $isPattern) { return $listed }
    foreach ($each in $listed) { if ($each.type.Split('/')[0] -like $Module.Name) { $each } }
}

function Invoke-DscResource {
    <#
    .SYNOPSIS
    Calls one method of one DSC resource.
    .DESCRIPTION
    Gets, tests or sets one instance of a resource, and nothing besides: Set does not test before. What the resource writes comes
    in the streams that it wrote to, while it does. An error of the resource ends the command, whatever -ErrorAction says.
    .PARAMETER Name
    The name of the resource, or its type as 'Module/Resource'.
    .PARAMETER ModuleName
    The module of the resource: a name, or a table with ModuleName and ModuleVersion, MaximumVersion, RequiredVersion or GUID.
    .PARAMETER Method
    Get returns a table of the properties, Test an object with InDesiredState, Set one with RebootRequired.
    .PARAMETER Property
    The properties of the instance.
    .PARAMETER IgnorePsDscRunAsCredential
    Leaves PsDscRunAsCredential out of the properties, which is an error otherwise.
    .EXAMPLE
    Invoke-DscResource -Name SampleFile -ModuleName Sample -Method Test -Property @{ Path = '/a' }
    .EXAMPLE
    Invoke-DscResource SampleFile @{ ModuleName = 'Sample'; ModuleVersion = '1.2.0.0' } Get @{ Path = '/a' }
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType([System.Collections.Specialized.OrderedDictionary], [InvokeDscResourceTestResult], [InvokeDscResourceSetResult])]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Name,

        [Parameter(Position = 1, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [Microsoft.PowerShell.Commands.ModuleSpecification] $ModuleName,

        [Parameter(Mandatory, Position = 2)]
        [ValidateSet('Get', 'Set', 'Test')]
        [string] $Method,

        [Parameter(Mandatory, Position = 3)]
        [hashtable] $Property,

        [switch] $IgnorePsDscRunAsCredential
    )

    begin {
        # Any other preference of a caller would go past 'throw': what is an error would be returned as the result. Errors that
        # the resource survived are reported as the caller wants it, and end nothing.
        $preference = if ($ErrorActionPreference -in 'SilentlyContinue', 'Ignore') { $ErrorActionPreference } else { 'Continue' }
        $ErrorActionPreference = 'Stop'
    }

    process {
        if ($Method -eq 'Set' -and -not $PSCmdlet.ShouldProcess($Name, 'Set')) { return }
        $parameters = @{ name = $Name; method = $Method.ToLowerInvariant(); properties = ConvertTo-Plain $Property }
        $parameters['log'] = if ($DebugPreference -eq 'SilentlyContinue') { 'verbose' } else { 'debug' }
        if ($ProgressPreference -notin 'SilentlyContinue', 'Ignore') { $parameters['progress'] = $true }
        if ($ModuleName) { $parameters['module'] = ConvertTo-Limit $ModuleName }
        if ($IgnorePsDscRunAsCredential) { $parameters['ignoreRunAsCredential'] = $true }
        # A request of an earlier resource is none of this one, and this one's is in the result.
        $ExecutionContext.SessionState.PSVariable.Remove('global:DSCMachineStatus')
        # What a Set went on from is in the error that it ends with.
        $isSet = $Method -eq 'Set'
        $survived = [System.Collections.Generic.List[string]]::new()
        $answer = Invoke-Request 'invoke' $parameters -Said {
            param($level, $text)
            switch ($level) {
                'error' { if ($isSet) { $survived.Add($text) } else { Write-Error -Message $text -ErrorAction $preference } }
                'warning' { Write-Warning $text }
                'info' { Write-Information $text }
                'verbose' { Write-Verbose $text }
                'debug' { Write-Debug $text }
                'progress' { $PSCmdlet.WriteProgress((ConvertTo-ProgressRecord $text)) }
            }
        }
        $problem = [System.Text.Json.JsonElement]::new()
        if ($answer.TryGetProperty('error', [ref] $problem)) {
            $record = ConvertTo-ErrorRecord $problem $Name
            # The identifier stays as it is; ThrowTerminatingError would append the name of this function.
            throw $record
        }
        foreach ($text in $survived) { Write-Error -Message $text -ErrorAction $preference }
        $result = $answer.GetProperty('result')
        switch ($Method) {
            'Get' { ConvertTo-State $result }
            'Test' { [InvokeDscResourceTestResult]@{ InDesiredState = $result.GetProperty('inDesiredState').GetBoolean() } }
            'Set' { [InvokeDscResourceSetResult]@{ RebootRequired = $result.GetProperty('rebootRequired').GetBoolean() } }
        }
    }
}

# The objects of resources as PSDesiredStateConfiguration has them. They are made in one loop: a call takes longer than one of them.
function ConvertTo-Info([ListedResource[]] $Resources) {
    foreach ($resource in $Resources) {
        $module, $name = $resource.type.Split('/')
        $isComposite = $resource.implementedAs -eq 'Composite'
        $version = [version] $resource.version.Replace('+', '.')
        [pscustomobject]@{
            PSTypeName           = 'Microsoft.PowerShell.DesiredStateConfiguration.DscResourceInfo'
            ImplementationDetail = $(if (-not $isComposite) { $resource.implementedAs })
            ResourceType         = $name
            Name                 = $name
            FriendlyName         = $null
            Module               = [pscustomobject]@{ Name = $module; Version = $version; Path = $resource.path; Guid = $resource.guid }
            ModuleName           = $module
            Version              = $version
            Path                 = $resource.path
            ParentPath           = $resource.directory
            ImplementedAs        = $(if ($isComposite) { 'Composite' } else { 'PowerShell' })
            CompanyName          = $(if ($resource.company) { $resource.company } else { $resource.author })
            Properties           = $resource.declared
        }
    }
}

# How a resource is written, as Get-DscResource -Syntax shows it.
function Get-Syntax($Info) {
    $lines = foreach ($property in $Info.Properties) {
        $type = $property.PropertyType
        if ($property.Values) { $type = "[string] { $($property.Values -join ' | ') }" }
        if ($property.IsMandatory) { "    $($property.Name) = $type" } else { "    [$($property.Name) = $type]" }
    }
    return "$($Info.Name) [String] #ResourceName`n{`n$($lines -join "`n")`n}"
}

function Get-DscResource {
    <#
    .SYNOPSIS
    Lists the DSC resources of the modules that there are.
    .DESCRIPTION
    Modules are read and nothing of them is run. All versions are listed.
    .PARAMETER Name
    Names of resources; wildcards are understood.
    .PARAMETER Module
    A module: a name, or a table with ModuleName and ModuleVersion, MaximumVersion, RequiredVersion or GUID.
    .PARAMETER Syntax
    Shows how each is written, in place of its object.
    .EXAMPLE
    Get-DscResource -Name Sample*
    .EXAMPLE
    (Get-DscResource -Name SampleFile -Module Sample).Properties
    .EXAMPLE
    Get-DscResource -Name SampleFile -Syntax
    #>
    [CmdletBinding()]
    [OutputType('Microsoft.PowerShell.DesiredStateConfiguration.DscResourceInfo', [string])]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Name,

        [Parameter(Position = 1, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [object] $Module,

        [Parameter()]
        [switch] $Syntax
    )

    begin {
        # A name that is not found is an error as the caller wants it, all others end the command.
        $preference = $ErrorActionPreference
        $ErrorActionPreference = 'Stop'
    }

    process {
        $listed = @(Get-Listed $Module)
        foreach ($each in $Name) {
            $isThere = $false
            foreach ($resource in $listed) { if ($resource.type.Split('/')[1] -like $each) { $isThere = $true; break } }
            if (-not $isThere -and -not [WildcardPattern]::ContainsWildcardCharacters($each)) {
                CheckResourceFound -Message "There is no DSC resource '$each'" -ErrorAction $preference
            }
        }
        $wanted = foreach ($resource in $listed) {
            if (-not $Name) { $resource; continue }
            $short = $resource.type.Split('/')[1]
            foreach ($each in $Name) { if ($short -like $each) { $resource; break } }
        }
        $infos = ConvertTo-Info $wanted
        if (-not $Syntax) { return $infos }
        foreach ($info in $infos) { Get-Syntax $info }
    }
}

# ---- completion --------------------------------------------------------------------------------------------------------

# The resources for completion: a list that is seconds old will do, and an error is none of somebody who types.
function Get-Completed {
    if (([datetime]::UtcNow - $completed.At).TotalSeconds -gt 10) {
        $completed.Resources = @(try { Get-DscResource } catch { Write-Debug "$_" })
        $completed.At = [datetime]::UtcNow
    }
    return $completed.Resources
}

function Complete-Word([string[]] $Words, [string] $Begun) {
    $begun = $Begun.Trim("'", '"')
    foreach ($word in $Words | Sort-Object -Unique) {
        if ($word -like "$begun*") { [CompletionResult]::new($(if ($word -match '[\s'']') { "'$($word -replace "'", "''")'" } else { $word }), $word, 'ParameterValue', $word) }
    }
}

# The text of a table with what must be stated, and of each property that has a list of values one with each of them.
function Complete-Property($Resource) {
    $stated = @($Resource.Properties | Where-Object IsMandatory)
    $pair = { param($property, $value) "$($property.Name) = '$value'" }
    $base = @($stated | ForEach-Object { & $pair $_ ($_.Values | Select-Object -First 1) })
    "@{ $($base -join '; ') }"
    foreach ($property in $Resource.Properties | Where-Object Values) {
        foreach ($value in $property.Values) {
            $others = @($stated | Where-Object Name -NE $property.Name | ForEach-Object { & $pair $_ ($_.Values | Select-Object -First 1) })
            "@{ $(($others + (& $pair $property $value)) -join '; ') }"
        }
    }
}

# The resource that a name, and a module where it is stated, mean.
function Find-Completed([string] $Name, [string] $Module) {
    Get-Completed | Where-Object { $_.Name -eq $Name -and (-not $Module -or $_.ModuleName -eq $Module) } | Select-Object -First 1
}

# Names and values within the table behind -Property. PowerShell asks nobody there but the function TabExpansion2.
function Complete-Within([Language.Ast] $Ast, [int] $At) {
    $within = { param($each) $each -is [Language.HashtableAst] -and $each.Extent.StartOffset -lt $At -and ($each.Extent.EndOffset -ge $At -or -not $each.Extent.Text.EndsWith('}')) }
    $table = $Ast.FindAll($within, $true) | Select-Object -Last 1
    $command = if ($table) { $table.Parent -as [Language.CommandAst] }
    if (-not $command -or $command.GetCommandName() -ne 'Invoke-DscResource') { return }
    $bound = [Language.StaticParameterBinder]::BindCommand($command, $true).BoundParameters
    if ($bound['ModuleName'] -and $bound['ModuleName'].Value -eq $table) { return }
    $resource = Find-Completed $bound['Name'].ConstantValue $bound['ModuleName'].ConstantValue
    if (-not $resource) { return }
    $text = $Ast.Extent.Text
    $before = $text.Substring($table.Extent.StartOffset + 2, [Math]::Min($At, $text.Length) - $table.Extent.StartOffset - 2)
    $pair = [regex]::Match($before, '(?:^|[;\n])\s*(?:[''"]?(?<name>\w+)[''"]?\s*=\s*(?<value>[''"]?\w*)|(?<key>\w*))$')
    if (-not $pair.Success) { return }
    if ($pair.Groups['name'].Success) {
        $begun = $pair.Groups['value'].Value
        $property = $resource.Properties | Where-Object Name -EQ $pair.Groups['name'].Value
        $words = if ($property.PropertyType -eq '[bool]') { '$true', '$false' } else { @($property.Values | ForEach-Object { "'$_'" }) }
        $offered = $words | Where-Object { $_.Trim("'", '$') -like "$($begun.Trim("'", '"'))*" } | ForEach-Object { [CompletionResult]::new($_, $_, 'ParameterValue', $_) }
    }
    else {
        $begun = $pair.Groups['key'].Value
        $stated = @($table.KeyValuePairs | Where-Object { $_.Item1.Extent.EndOffset -lt $At - $begun.Length } | ForEach-Object { $_.Item1.Extent.Text.Trim("'", '"') })
        $missing = $resource.Properties | Where-Object { $_.Name -like "$begun*" -and $_.Name -notin $stated -and $_.Name -notin 'DependsOn', 'PsDscRunAsCredential' }
        $offered = $missing | ForEach-Object { [CompletionResult]::new("$($_.Name) = ", $_.Name, 'Property', "$($_.Name): $($_.PropertyType)") }
    }
    if ($offered) { [CommandCompletion]::new([System.Collections.ObjectModel.Collection[CompletionResult]] @($offered), -1, $At - $begun.Length, $begun.Length) }
}

# Where the table offers nothing, what there was before offers what it has.
$formerExpansion = $function:global:TabExpansion2
$ownExpansion = {
    [CmdletBinding(DefaultParameterSetName = 'ScriptInputSet')]
    [OutputType([System.Management.Automation.CommandCompletion])]
    param(
        [Parameter(ParameterSetName = 'ScriptInputSet', Mandatory, Position = 0)] [AllowEmptyString()] [string] $inputScript,
        [Parameter(ParameterSetName = 'ScriptInputSet', Position = 1)] [int] $cursorColumn = $inputScript.Length,
        [Parameter(ParameterSetName = 'AstInputSet', Mandatory, Position = 0)] [System.Management.Automation.Language.Ast] $ast,
        [Parameter(ParameterSetName = 'AstInputSet', Mandatory, Position = 1)] [System.Management.Automation.Language.Token[]] $tokens,
        [Parameter(ParameterSetName = 'AstInputSet', Mandatory, Position = 2)] [System.Management.Automation.Language.IScriptPosition] $positionOfCursor,
        [Parameter(ParameterSetName = 'ScriptInputSet', Position = 2)] [Parameter(ParameterSetName = 'AstInputSet', Position = 3)] [hashtable] $options
    )
    try {
        $parsed, $at = if ($ast) { $ast, $positionOfCursor.Offset } else { [Language.Parser]::ParseInput($inputScript, [ref] $null, [ref] $null), $cursorColumn }
        $within = Complete-Within $parsed $at
    }
    catch { Write-Debug "$_" }
    if ($within) { $within } else { & $formerExpansion @PSBoundParameters }
}
if ($formerExpansion) { $function:global:TabExpansion2 = $ownExpansion }

$completer = {
    param($command, $parameter, $begun, $syntax, $bound)
    $known = Get-Completed
    if ($bound['Name'] -and $parameter -ne 'Name') { $known = $known | Where-Object { $_.Name -in $bound['Name'] } }
    $module = if ($bound['ModuleName']) { $bound['ModuleName'] } else { $bound['Module'] }
    if ($module -is [string] -and $parameter -notin 'ModuleName', 'Module') { $known = $known | Where-Object ModuleName -EQ $module }
    if ($parameter -ne 'Property') { return Complete-Word $known.$(if ($parameter -eq 'Name') { 'Name' } else { 'ModuleName' }) $begun }
    foreach ($text in $known | Select-Object -First 1 | ForEach-Object { Complete-Property $_ }) {
        [CompletionResult]::new($text, $text, 'ParameterValue', $text)
    }
}
foreach ($parameter in 'Name', 'ModuleName', 'Property') { Register-ArgumentCompleter -CommandName Invoke-DscResource -ParameterName $parameter -ScriptBlock $completer }
foreach ($parameter in 'Name', 'Module') { Register-ArgumentCompleter -CommandName Get-DscResource -ParameterName $parameter -ScriptBlock $completer }

Export-ModuleMember -Function 'Get-DscResource', 'Invoke-DscResource'
