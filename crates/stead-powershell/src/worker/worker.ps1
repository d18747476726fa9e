<#
A warm worker: reads one request a line and answers with lines, until the socket is closed. One call at a time; whoever
started it ends it when a call takes too long. Standard output and error are not part of the protocol.

Request   7<tab>{"kind":"class","module":"/x/Demo.psd1","resource":"Demo","method":"Set","records":"verbose",
                 "directory":"/home/you","root":"/home/you","names":["Name"]}<tab>["n"]
                                                                              a random number, what is asked for, the values;
                                                                              records "none": warnings and errors alone
Answers   {"id":"7","stream":"verbose","message":".."}                        any number, as they happen
          {"id":"7","type":"System.Boolean","output":true}                    what the method returned or leaked
          {"id":"7","type":"System.IntPtr","refused":"$: no JSON form .."}
          {"id":"7","done":{"ended":true,"reboot":false}}                     "ended": the script came to its end
       or {"id":"7","error":{"id":"..","message":"..","reboot":false, ..}}
#>
param($socket, $reader, $writer, $values)

Set-StrictMode -Version 3
$ErrorActionPreference = 'Stop'

# ---- the state of the process -----------------------------------------------------------------------------------------

# The variables, and all of them in one text: whether any changed is asked after each call. One may be called 'Keys'.
function Get-Environment($variables = [Environment]::GetEnvironmentVariables()) {
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

# Where the document is belongs to what each module finds: it changes with the document alone, and is put back by no call.
function Set-Root([string] $root) {
    $process['Root'] = $root
    # A module that is being loaded may have set others.
    [Environment]::SetEnvironmentVariable('DSC_CONFIG_ROOT', $root)
    foreach ($environment in @($atStart; $runspaces.get_Values() | ForEach-Object { $_['Environment'] })) {
        $environment['Variables']['DSC_CONFIG_ROOT'] = $root
        $environment['Text'] = ''
    }
}

$atStart = Get-Environment $variablesAtStart
$process = @{ Environment = $atStart; Classes = $null; Root = $null }

# ---- values -----------------------------------------------------------------------------------------------------------

function Get-Class([string] $name) {
    if (-not $process['Classes']) { $process['Classes'] = & ([scriptblock]::Create($values)) }
    return $process['Classes'][$name]
}

# What is asked for, as it is said of many calls, and what is known of it. Folders and modules may differ in case alone.
$asked = [hashtable]::new([StringComparer]::Ordinal)

function Get-Asked([string] $text) {
    $known = @{ kind = ''; module = ''; resource = ''; names = [string[]]@() }
    $document = [System.Text.Json.JsonDocument]::Parse($text, $options)
    foreach ($member in $document.RootElement.EnumerateObject()) {
        if ($member.Name -cne 'names') { $known[$member.Name] = $member.Value.GetString(); continue }
        $known['names'] = [string[]]@(foreach ($name in $member.Value.EnumerateArray()) { $name.GetString() })
    }
    $document.Dispose()
    $known['key'] = [string]::Join('|', $known['kind'], $known['module'], $known['resource'])
    $known['level'] = $level = $levels[$known['records']]
    $known['Shape'] = [string]::Join("`0", @($known['method']) + $known['names'])
    foreach ($stream in @{ Verbose = 2; Debug = 3; Information = 1 }.GetEnumerator()) {
        $known[$stream.Key] = if ($level -ge $stream.Value) { 'Continue' } else { 'SilentlyContinue' }
    }
    $asked[$text] = $known
    return $known
}

$string = [System.Text.Json.JsonValueKind]::String
$options = [System.Text.Json.JsonDocumentOptions]::new()
$options.MaxDepth = 512

# ---- one runspace for a module ----------------------------------------------------------------------------------------

$runspaces = [hashtable]::new([StringComparer]::Ordinal)

function Open-ModuleRunspace($request) {
    $key = $request['key']
    if ($runspaces.ContainsKey($key)) {
        $moduleRunspace = $runspaces[$key]
        if (-not [object]::ReferenceEquals($process['Environment'], $moduleRunspace['Environment'])) { Restore-Process $moduleRunspace['Environment'] }
        return $moduleRunspace
    }
    if (-not [object]::ReferenceEquals($process['Environment'], $atStart)) { Restore-Process $atStart }
    $loading = $begun[$key]
    $begun.Remove($key)
    if ($null -eq $loading) {
        $runspace = New-ModuleRunspace
        $runspace.Open()
        $loading = Start-Load $runspace $request['asked']['kind'] $request['asked']['module'] $request['asked']['resource']
    }
    $moduleRunspace = @{ Runspace = $loading['Runspace']; Environment = $atStart; Shell = $null; Shared = [hashtable]::Synchronized(@{ Property = $null; Bodies = [hashtable]::new([StringComparer]::Ordinal); Call = $null; Values = $null; Began = $false; Came = $false; Reboot = $false; Unready = $null }) }
    $runspaces[$key] = $moduleRunspace
    New-Calls $moduleRunspace $request['asked']['kind']
    $loaded = Complete-Load $loading
    if ($null -eq $loaded) { throw [InvalidOperationException]::new("the module has no resource '$($request['asked']['resource'])'") }
    $moduleRunspace['Shared']['Target'] = $loaded['Target']
    $moduleRunspace['Shared']['AfterImport'] = $loaded['AfterImport']
    # What it set in the environment when it was loaded is its own, also what it added to the path, without what PowerShell adds.
    if ($env:PSModulePath -cne $modulePath) {
        $separator = [System.IO.Path]::PathSeparator
        $own = $modulePath.Split($separator)
        $computed = @($loading['Computed'].Split($separator) | Where-Object { $_ -notin $own })
        $paths = $env:PSModulePath.Split($separator) | Where-Object { $_ -notin $computed }
        $env:PSModulePath = [string]::Join($separator, @($paths))
    }
    $moduleRunspace['Environment'] = $process['Environment'] = Get-Environment
    return $moduleRunspace
}

# What is known of a module that was loaded, or nothing where the resource is not there.
function Complete-Load($loading) {
    $shell = $loading['Shell']
    try {
        try { $found = $shell.EndInvoke($loading['Running']) }
        finally {
            # An error of Import-Module ends its statement alone: the last one says why nothing came.
            foreach ($stream in $shell.Streams.Error, $shell.Streams.Warning, $shell.Streams.Information) { $during['Load'].AddRange($stream.ReadAll()) }
        }
        if ($found.Count) { return $found[$found.Count - 1].psobject.BaseObject }
    } finally { $shell.Dispose() }
}

function Close-ModuleRunspace($request) {
    $key = $request['key']
    if (-not $runspaces.ContainsKey($key)) { return }
    Stop-Calls $runspaces[$key]
    $runspaces[$key]['Runspace'].Dispose()
    $runspaces.Remove($key)
}

# ---- one call -----------------------------------------------------------------------------------------------------------

# Load: what was reported while a module was loaded. Reported: the errors that the resource reported and went on from.
$during = @{ Step = 'start'; Load = [System.Collections.Generic.List[object]]::new(); Reported = [System.Collections.Generic.List[object]]::new(); More = 0 }
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
    if ($of -le $level) { $writer.WriteLine('{"id":"' + $id + '","stream":"' + $stream + '","message":' + (Get-Class Json)::Message($text) + '}') }
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
    $head = '{"id":"' + $id + '","type":' + (Get-Class Json)::Message($type)
    try { $json = (Get-Class Json)::Of($value) }
    catch {
        Send ($head + ',"refused":' + (Get-Class Json)::Message($_.Exception.GetBaseException().Message) + '}')
        return
    }
    Send ($head + ',"output":' + $json + '}')
}

# The pipeline that carries out the calls of a module, which is kept from one to the next.
function New-Calls($moduleRunspace, $kind) {
    foreach ($each in 'Given', 'Ended') { $moduleRunspace[$each] = [System.Threading.AutoResetEvent]::new($false) }
    $moduleRunspace['Output'] = [System.Management.Automation.PSDataCollection[psobject]]::new()
    $moduleRunspace['Shell'] = $shell = [powershell]::Create($moduleRunspace['Runspace'])
    $textOf = if ($kind -eq 'class') { $classText } else { $scriptText }
    # In a scope of its own: what a resource sees of it are the preferences.
    [void]$shell.AddScript($callText, $true).AddArgument($moduleRunspace['Given']).AddArgument($moduleRunspace['Ended'])
    [void]$shell.AddArgument($textOf.ToString()).AddArgument($moduleRunspace['Shared'])
    $moduleRunspace['Running'] = $null
}

# Ends the pipeline; throws the error it ended with, if any.
function Stop-Calls($moduleRunspace) {
    if ($null -eq $moduleRunspace['Running']) { return }
    $moduleRunspace['Shared']['Call'] = $null
    [void]$moduleRunspace['Given'].Set()
    try { [void]$moduleRunspace['Shell'].EndInvoke($moduleRunspace['Running']) }
    finally {
        foreach ($each in 'Shell', 'Given', 'Ended') { $moduleRunspace[$each].Dispose() }
        $moduleRunspace['Shell'] = $moduleRunspace['Running'] = $null
    }
}

$flag = @{ $true = 'true'; $false = 'false' }

# Where the method did not come to its end, its pipeline has ended. One that did not begin has asked for nothing.
function Test-Restart($moduleRunspace) {
    if (-not $moduleRunspace['Shared']['Began']) { return $false }
    if ($null -ne $moduleRunspace['Running']) { return $moduleRunspace['Shared']['Reboot'] }
    try { [bool]($moduleRunspace['Runspace'].SessionStateProxy.GetVariable('DSCMachineStatus') -eq 1) } catch { $false }
}

# A function takes as long as twenty statements: what each call needs is here.
function Invoke-Request($request) {
    $id = $request['id']
    $level = $request['level']
    $about = $request['asked']
    $during['Step'] = 'load'
    if ($about['root'] -cne $process['Root']) { Set-Root $about['root'] }
    $moduleRunspace = $runspaces[$request['key']]
    if ($null -eq $moduleRunspace -or -not [object]::ReferenceEquals($process['Environment'], $moduleRunspace['Environment'])) {
        $during['Load'].Clear()
        $moduleRunspace = Open-ModuleRunspace $request
        # What a module reports when it is loaded is shown, and fails nothing.
        foreach ($record in $during['Load']) { [void](Send-Record $id $record $level) }
        $during['Load'].Clear()
    }
    $during['Step'] = 'call'
    $shared = $moduleRunspace['Shared']
    $shared['Began'] = $shared['Came'] = $false
    if ($about['directory'] -cne $folder) { [Environment]::CurrentDirectory = $about['directory'] }
    if ($null -eq $moduleRunspace['Shell']) { New-Calls $moduleRunspace $about['kind'] }
    $output = $moduleRunspace['Output']
    if ($null -eq $moduleRunspace['Running']) {
        $moduleRunspace['Running'] = $moduleRunspace['Shell'].BeginInvoke([System.Management.Automation.PSDataCollection[psobject]]$null, $output)
    }
    $shared['Values'] = $request['values']
    $shared['Call'] = $about
    $ended = $moduleRunspace['Ended']
    $errors = $moduleRunspace['Shell'].Streams.Error
    [void]$moduleRunspace['Given'].Set()
    do {
        $done = $ended.WaitOne(20)
        foreach ($item in $output.ReadAll()) {
            if ($item -is [bool]) {
                $writer.WriteLine('{"id":"' + $id + '","type":"System.Boolean","output":' + $flag[[bool]$item] + '}')
                continue
            }
            # Assignments: an 'if' as a value takes arrays apart.
            $value = $null
            if ($null -ne $item) { $value = $item.psobject.BaseObject }
            if (Send-Record $id $value $level) { continue }
            if ($value -is [System.Management.Automation.PSCustomObject]) { $value = $item }
            Send-Output $id $value
        }
        # An error among the objects is one that the resource caught.
        if ($errors.Count) { foreach ($item in $errors.ReadAll()) { Send-Reported $id $item $level } }
        if (-not $done) {
            $writer.Flush()
            # Whoever asked is gone.
            if ($socket.Poll(0, 'SelectRead') -and $socket.Available -eq 0) { [Environment]::Exit(3) }
        }
    } until ($done)
    $came = $shared['Came']
    if (-not $came) {
        Stop-Calls $moduleRunspace
        # An earlier call may have left what no later one can put back: a new runspace has nothing of it.
        if (-not $shared['Began']) {
            Close-ModuleRunspace $request
            if ($request['again']) { throw $shared['Unready'] }
            $request['again'] = $true
            Invoke-Request $request
            return
        }
    }
    # A change that went on after errors came to its end, and is not made.
    elseif ($during['Reported'].Count -and $about['method'] -in 'Set', 'Delete') {
        $reported = $during['Reported']
        $count = if ($reported.Count -gt 1) { "$($reported.Count + $during['More']) errors: " }
        Send-Failure $request $reported[0] "$count$(Join-Reported)"
        return
    }
    $reboot = if ($came) { $shared['Reboot'] } else { Test-Restart $moduleRunspace }
    $writer.WriteLine('{"id":"' + $id + '","done":{"ended":' + $flag[$came] + ',"reboot":' + $flag[$reboot] + '}}')
    $writer.Flush()
}

function Join-Reported {
    $texts = @(foreach ($record in $during['Reported']) { "$record" })
    if ($during['More']) { $texts += "and $($during['More']) more" }
    return [string]::Join('; ', $texts)
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

function Join-Inner($exception) {
    $texts = [System.Collections.Generic.List[string]]::new()
    while ($exception.InnerException -and $texts.Count -lt 16) {
        $exception = $exception.InnerException
        $texts.Add('[' + (Get-Class Json)::Message($exception.GetType().FullName) + ',' + (Get-Class Json)::Message($exception.Message) + ']')
    }
    return [string]::Join(',', $texts)
}

function Send-Failure($request, $record, $text) {
    $cause, $exception = if ($text) { $record, $record.Exception } else { Get-Cause $record }
    if (-not $text) {
        $text = "$cause"
        # What it went on from may be why it came to this.
        if ($during['Reported'].Count) { $text += "; before it: $(Join-Reported)" }
    }
    # What 'throw' was given is in the record of the exception that PowerShell made for it.
    $own = $cause.Exception
    if ($exception -is [System.Management.Automation.RuntimeException] -and $own -and $own -isnot [System.Management.Automation.ParentContainsErrorRecordException]) { $exception = $own }
    $moduleRunspace = $runspaces[$request['key']]
    $property = ''
    $reboot = $false
    # A request for a restart counts though the method failed after it.
    if ($moduleRunspace -and $during['Step'] -eq 'call') {
        $property = [string]$moduleRunspace['Shared']['Property']
        $reboot = Test-Restart $moduleRunspace
    }
    $at = Get-Place $cause
    $line = '{"id":"' + $request['id'] + '","error":{"id":' + (Get-Class Json)::Message($cause.FullyQualifiedErrorId)
    $line += ',"category":' + (Get-Class Json)::Message([string]$cause.CategoryInfo.Category) + ',"type":' + (Get-Class Json)::Message($exception.GetType().FullName)
    $line += ',"message":' + (Get-Class Json)::Message($text) + ',"at":' + (Get-Class Json)::Message($at)
    $line += ',"stack":' + (Get-Class Json)::Message([string]$cause.ScriptStackTrace) + ',"inner":[' + (Join-Inner $exception) + ']'
    $line += ',"during":' + (Get-Class Json)::Message($during['Step']) + ',"property":' + (Get-Class Json)::Message($property)
    $line += ',"reboot":' + $flag[$reboot] + '}}'
    Send $line
}

# Where a module gave nothing, the last error that was reported says why.
function Get-LoadError($record) {
    $errors = @($during['Load'] | Where-Object { $_ -is [System.Management.Automation.ErrorRecord] })
    if ($during['Step'] -eq 'load' -and $errors.Count -and $record.Exception -is [InvalidOperationException]) { return $errors[-1] }
    return $record
}

# ---- the loop -----------------------------------------------------------------------------------------------------------

while ($null -ne ($line = $reader.ReadLine())) {
    $id, $about, $stated = $line.Split("`t")
    $request = @{ id = $id; key = ''; level = 0; again = $false }
    try {
        $during['Step'] = 'read'
        $during['Reported'].Clear()
        $during['More'] = 0
        $of = $asked[$about]
        if ($null -eq $of) { $of = Get-Asked $about }
        $request['asked'] = $of
        $request['key'] = $of['key']
        $request['level'] = $of['level']
        $document = [System.Text.Json.JsonDocument]::Parse($stated, $options)
        try {
            $root = $document.RootElement
            $request['values'] = $read = [object[]]::new($root.GetArrayLength())
            $index = 0
            foreach ($value in $root.EnumerateArray()) {
                if ($value.ValueKind -eq $string) { $read[$index++] = $value.GetString() } else { $read[$index++] = (Get-Class Wire)::Value($value) }
            }
        } finally { $document.Dispose() }
        Invoke-Request $request
    }
    catch {
        Send-Failure $request (Get-LoadError $_)
        # A module that failed in the middle starts anew.
        Close-ModuleRunspace $request
    }
    # The call is answered; for another one this process is of no use.
    try {
        $moduleRunspace = $runspaces[$request['key']]
        Restore-Process $(if ($moduleRunspace) { $moduleRunspace['Environment'] } else { $atStart })
    } catch { [Environment]::Exit(4) }
    # What waits for a runspace that does nothing, as an action of an event does, has its turn.
    if (-not $socket.Poll(50000, 'SelectRead')) { foreach ($each in $runspaces.Values) { Stop-Calls $each } }
}
# Threads of a resource would keep the process.
[Environment]::Exit(0)
