# The statements of RFC 0047 about Invoke-DscResource, and what its users expect besides. Run by `cargo test --test powershell`,
# or by Invoke-Pester with $env:STEAD as the program.

BeforeAll {
    $env:PSModulePath = (Join-Path $PSScriptRoot 'modules') + [System.IO.Path]::PathSeparator + $env:PSModulePath
    $module = Join-Path $PSScriptRoot '../Stead/Stead.psd1'
    Import-Module $module -Force
    function Get-RunningProgram { [AppDomain]::CurrentDomain.GetData('Stead.Server').Process }
    # A program in the place of stead: a script, after it was sent its first line.
    function New-Program([string] $Name, [string] $Script) {
        $program = Join-Path $TestDrive $Name
        [System.IO.File]::WriteAllText($program, "#!/bin/sh`n$Script`n")
        [System.IO.File]::SetUnixFileMode($program, 'UserRead, UserWrite, UserExecute')
        return $program
    }
    function Get-Caught([scriptblock] $Script) { try { & $Script } catch { $_ } }
}

Describe 'Invoke-DscResource of RFC 0047' {
    It 'takes name, module, method and properties by position' {
        (Invoke-DscResource Sample Sample Test @{ Name = 'a' } 3>$null).InDesiredState | Should -BeTrue
    }
    It 'runs the example of the source as it is written' {
        $shown = Invoke-DscResource -Name Script -ModuleName @{ModuleName='PSDscResources';ModuleVersion='2.12.0.0'} -Method 'Set' -Property @{
            GetScript  = '<# My Get ScriptBlock #>'
            SetScript  = '<# My Set ScriptBlock #>'
            TestScript = '<# My Test ScriptBlock #>'
        } -Verbose *>&1
        ($shown | Where-Object { $_ -isnot [System.Management.Automation.VerboseRecord] }).RebootRequired | Should -BeExactly $false
        ($shown | Where-Object { $_ -is [System.Management.Automation.VerboseRecord] }).Message | Should -Contain 'sets by 24 characters'
    }
    It 'refuses the example of the source with PsDscRunAsCredential' {
        $credential = [pscredential]::new('somebody', (ConvertTo-SecureString 'secret' -AsPlainText -Force))
        $stated = @{ GetScript = '1'; SetScript = '1'; TestScript = '$true'; PsDscRunAsCredential = $credential }
        $caught = Get-Caught { Invoke-DscResource Script @{ModuleName='PSDscResources';ModuleVersion='2.12.0.0'} Set $stated -Verbose }
        $caught.FullyQualifiedErrorId | Should -Be 'PsDscRunAsCredentialNotSupport,Invoke-DscResource'
    }
    It 'runs the functions of a resource with a schema: <Method>' -ForEach @(
        @{ Method = 'Get'; Member = 'Result'; Value = 'read' }, @{ Method = 'Test'; Member = 'InDesiredState'; Value = $true }
        @{ Method = 'Set'; Member = 'RebootRequired'; Value = $true }
    ) {
        $script = @{ GetScript = '"read"'; SetScript = '$global:DSCMachineStatus = 1'; TestScript = '$true' }
        (Invoke-DscResource Script PSDscResources $Method $script).$Member | Should -BeExactly $Value
    }
    It 'takes the name from the pipeline' {
        ('Sample' | Invoke-DscResource -Method Test -Property @{ Name = 'a' } 3>$null).InDesiredState | Should -BeTrue
    }
    It 'finds a module by its name and exact version' {
        $found = Invoke-DscResource Sample @{ ModuleName = 'Sample'; RequiredVersion = '2.12.0' } Get @{ Name = 'a' }
        $found.Name | Should -Be 'a'
    }
    It 'finds a module of at least a version of four parts' {
        (Invoke-DscResource Sample @{ ModuleName = 'Sample'; ModuleVersion = '2.12.0.0' } Get @{ Name = 'a' }).Name | Should -Be 'a'
    }
    It 'finds a module by <_>' -ForEach @(
        @{ ModuleName = 'Sample'; RequiredVersion = '2.12.0.0' }, @{ ModuleName = 'Sample'; RequiredVersion = '2.12' }
        @{ ModuleName = 'Sample'; MaximumVersion = '2.12' }, @{ ModuleName = 'Sample'; MaximumVersion = '2.*' }
        @{ ModuleName = 'Sample'; ModuleVersion = '1.0'; GUID = 'e2b1f6a0-4a55-4d1e-8f6c-0d6f6d2a7c11' }
    ) {
        (Invoke-DscResource Sample $_ Get @{ Name = 'a' }).Name | Should -Be 'a'
        (Get-DscResource Sample -Module $_).Version | Should -Be '2.12.0'
    }
    It 'finds no module by a version or GUID that it has not' -ForEach @(
        @{ ModuleName = 'Sample'; ModuleVersion = '2.13' }, @{ ModuleName = 'Sample'; MaximumVersion = '2.11.*' }
        @{ ModuleName = 'Sample'; ModuleVersion = '1.0'; GUID = 'e2b1f6a0-4a55-4d1e-8f6c-0d6f6d2a7c12' }
        @{ ModuleName = 'Sample'; RequiredVersion = '2.12.0'; GUID = 'e2b1f6a0-4a55-4d1e-8f6c-0d6f6d2a7c12' }
    ) {
        (Get-Caught { Invoke-DscResource Sample $_ Get @{ Name = 'a' } }).CategoryInfo.Category | Should -Be 'InvalidArgument'
        Get-DscResource -Module $_ | Should -BeNullOrEmpty
    }
    It 'refuses a name that two modules have, and lists both' {
        $caught = Get-Caught { Invoke-DscResource Twin -Method Get -Property @{ Name = 'a' } }
        $caught.FullyQualifiedErrorId | Should -Be 'InvalidResourceSpecification,Invoke-DscResource'
        "$caught" | Should -BeLike '*Twin1/Twin*Twin2/Twin*'
    }
    It 'refuses a name that a module has in two versions, and lists both' {
        $caught = Get-Caught { Invoke-DscResource Versioned -Method Get -Property @{ Name = 'a' } }
        $caught.FullyQualifiedErrorId | Should -Be 'InvalidResourceSpecification,Invoke-DscResource'
        "$caught" | Should -BeLike '*2.0.0*1.0.0*'
        (Invoke-DscResource Versioned @{ ModuleName = 'Versions'; RequiredVersion = '1.0.0' } Get @{ Name = 'a' }).Name | Should -Be 'a'
    }
    It 'carries out no composite resource' {
        $caught = Get-Caught { Invoke-DscResource Both -Method Test -Property @{ Root = '/' } }
        $caught.FullyQualifiedErrorId | Should -Be 'UnsupportedResourceImplementation,Invoke-DscResource'
    }
    It 'carries out what is not PowerShell, too, which the source leaves for later' {
        (Invoke-DscResource Stead/File -Method Test -Property @{ path = '/usr/none'; _exist = $false }).InDesiredState | Should -BeTrue
    }
    It 'runs as the current user' {
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'user' }).Seen | Should -Be ([Environment]::UserName)
    }
    It 'passes no variable of the caller that is not named, and says so where a resource reads it' {
        $env:SAMPLE_ASKED = 'seen'
        try { $shown = Invoke-DscResource Sample -Method Get -Property @{ Name = 'variable' } 3>&1 } finally { $env:SAMPLE_ASKED = $null }
        ($shown | Where-Object { $_ -is [System.Management.Automation.WarningRecord] }).Message | Should -BeLike "*SAMPLE_ASKED*--env SAMPLE_ASKED*"
        ($shown | Where-Object { $_ -is [System.Collections.IDictionary] }).Seen | Should -BeNullOrEmpty
    }
    It 'says that there is no such resource' {
        $caught = Get-Caught { Invoke-DscResource NoSuch -Method Get -Property @{ } }
        $caught.FullyQualifiedErrorId | Should -Be 'Microsoft.PowerShell.Commands.WriteErrorException,CheckResourceFound'
    }
    It 'runs in the location and with the module path of the caller' {
        Push-Location /usr
        try { (Invoke-DscResource Sample -Method Get -Property @{ Name = 'location' }).Seen | Should -Be '/usr' } finally { Pop-Location }
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'path' }).Seen | Should -BeLike "$(Join-Path $PSScriptRoot 'modules')*"
    }
    It 'shows verbose messages with -Verbose, and without it warnings alone' {
        $shown = Invoke-DscResource Sample -Method Test -Property @{ Name = 'a' } -Verbose *>&1
        $shown | Where-Object { $_ -is [System.Management.Automation.VerboseRecord] } | Should -Be 'a verbose message'
        $shown | Where-Object { $_ -is [System.Management.Automation.WarningRecord] } | Should -Be 'a warning'
        $shown | Where-Object { $_ -is [System.Management.Automation.InformationRecord] } | Should -Be 'an information'
        $shown = Invoke-DscResource Sample -Method Test -Property @{ Name = 'a' } *>&1
        $shown | Where-Object { $_ -is [System.Management.Automation.VerboseRecord] } | Should -BeNullOrEmpty
        $shown | Where-Object { $_ -is [System.Management.Automation.WarningRecord] } | Should -Be 'a warning'
    }
    It 'shows debug messages with -Debug' {
        $shown = Invoke-DscResource Sample -Method Test -Property @{ Name = 'a' } -Debug *>&1
        $shown | Where-Object { $_ -is [System.Management.Automation.DebugRecord] } | Should -Be 'a debug message'
    }
    It 'shows how far a resource is in a stream of its own, unless nobody wants it' {
        $shown = foreach ($preference in 'Continue', 'SilentlyContinue') {
            $shell = [powershell]::Create()
            [void] $shell.AddScript('param($module, $preference) $ProgressPreference = $preference; Import-Module $module
                Invoke-DscResource Sample -Method Get -Property @{ Name = "progress"; Text = "a file" }')
            [void] $shell.AddArgument($module).AddArgument($preference)
            [void] $shell.Invoke()
            $shell.HadErrors | Should -BeFalse
            $progress = $shell.Streams.Progress.ReadAll()
            # One without a name.
            if ($preference -eq 'Continue' -and $PSVersionTable.PSVersion -ge '7.6') { ($progress | Where-Object ActivityId -EQ 5).RecordType | Should -Be 'Completed' }
            $progress | Where-Object ActivityId -EQ 3
            $shell.Dispose()
        }
        $shown.RecordType | Should -Be 'Processing', 'Completed'
        $shown[0].Activity, $shown[0].StatusDescription, $shown[0].CurrentOperation | Should -Be 'Copying', 'one of two', 'a file'
        $shown[0].PercentComplete, $shown[0].SecondsRemaining, $shown[0].ParentActivityId | Should -Be 50, 7, -1
    }
    It 'refuses PsDscRunAsCredential, also null, unless it is to be ignored' {
        $caught = Get-Caught { Invoke-DscResource Sample -Method Test -Property @{ Name = 'a'; PsDscRunAsCredential = $null } }
        $caught.FullyQualifiedErrorId | Should -Be 'PsDscRunAsCredentialNotSupport,Invoke-DscResource'
        $ignored = Invoke-DscResource Sample -Method Test -Property @{ Name = 'a'; PsDscRunAsCredential = $null } -IgnorePsDscRunAsCredential 3>$null
        $ignored.InDesiredState | Should -BeTrue
    }
    It 'calls the method that was asked for and no other: <_>' -ForEach 'Get', 'Test', 'Set' {
        $notes = Join-Path $TestDrive "notes-$_"
        $null = Invoke-DscResource Sample -Method $_ -Property @{ Name = 'note'; Text = $notes } 3>$null
        Get-Content $notes | Should -Be $_
    }
    It 'returns a table of the properties from Get' {
        $got = Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }
        $got | Should -BeOfType System.Collections.IDictionary
        $got.Ensure | Should -Be 'Present'
    }
    It 'returns InDesiredState from Test and RebootRequired from Set' {
        (Invoke-DscResource Sample -Method Test -Property @{ Name = 'out' } 3>$null).InDesiredState | Should -BeExactly $false
        (Invoke-DscResource Sample -Method Set -Property @{ Name = 'a' }).RebootRequired | Should -BeExactly $false
    }
    It 'takes a restart from $global:DSCMachineStatus, which is not there before and afterwards' {
        $global:DSCMachineStatus = 1
        (Invoke-DscResource Sample -Method Set -Property @{ Name = 'a' }).RebootRequired | Should -BeExactly $false
        (Invoke-DscResource Sample -Method Set -Property @{ Name = 'restart' }).RebootRequired | Should -BeExactly $true
        Test-Path variable:global:DSCMachineStatus | Should -BeFalse
    }
}

Describe 'Values' {
    It 'keeps a text that looks like a date' {
        $text = '2024-01-01T00:00:00+02:00'
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; Text = $text }).Text | Should -BeExactly $text
    }
    It 'returns dates, integers, arrays, enumerations and nested classes by what the class declares' {
        $when = [datetime]::new(2024, 1, 2, 3, 4, 5, [DateTimeKind]::Utc)
        $got = Invoke-DscResource Sample -Method Get -Property @{
            Name = 'a'; When = $when; Small = 3; Numbers = 1, 2; Kind = 'High'; Inner = @{ Text = 'x'; Count = 3 }
        }
        $got.When | Should -BeOfType datetime
        $got.When.ToUniversalTime() | Should -Be $when
        $got.Small | Should -BeOfType uint16
        , $got.Numbers | Should -BeOfType int[]
        $got.Kind | Should -Be 'High'
        $got.Inner.Text | Should -Be 'x'
    }
    It 'takes for a text <Name>' -ForEach @(
        @{ Name = 'a file'; Value = Get-Item '/usr'; Text = '/usr' }, @{ Name = 'a script block'; Value = { 1 + 1 }; Text = ' 1 + 1 ' }
        @{ Name = 'xml'; Value = [xml] '<a><b/></a>'; Text = '<a><b /></a>' }, @{ Name = 'a version'; Value = [semver] '1.2.3-a'; Text = '1.2.3-a' }
        @{ Name = 'an address'; Value = [ipaddress] '::1'; Text = '::1' }
        @{ Name = 'a part of xml'; Value = ([xml] '<a><b/></a>').DocumentElement; Text = '<a><b /></a>' }
        @{ Name = 'what is beyond ASCII'; Value = "`u{e4} `u{2028} `u{1f600} `u{85}"; Text = "`u{e4} `u{2028} `u{1f600} `u{85}" }
    ) {
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; Text = $Value }).Text | Should -BeExactly $Text
    }
    It 'takes a table for a property of that type, with what is nested in it' {
        $got = Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; Table = @{ Text = '2024-01-01'; Deep = @{ Numbers = 1, 2 } } }
        $got.Table.Text | Should -BeExactly '2024-01-01'
        $got.Table.Deep.Numbers | Should -Be 1, 2
    }
    It 'refuses a table that contains itself' {
        $table = @{ Name = 'a' }
        $table.Inner = $table
        (Get-Caught { Invoke-DscResource Sample -Method Get -Property $table }).FullyQualifiedErrorId | Should -Be 'PropertyTooDeep,Invoke-DscResource'
    }
    It 'takes for a list <Name>' -ForEach @(
        @{ Name = 'a set'; Value = [System.Collections.Generic.HashSet[int]] @(1, 2) }, @{ Name = 'a queue'; Value = [System.Collections.Queue] @(1, 2) }
        @{ Name = 'the values of a table'; Value = ([ordered]@{ a = 1; b = 2 }).Values }, @{ Name = 'what is computed'; Value = [System.Linq.Enumerable]::Range(1, 2) }
    ) {
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; Numbers = $Value }).Numbers | Should -Be 1, 2
    }
    It 'refuses a text that is not valid Unicode' {
        $caught = Get-Caught { Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; Text = "x$([char] 0xd800)y" } }
        $caught.FullyQualifiedErrorId | Should -Be 'NotUnicode,Stead'
        $caught.CategoryInfo.Category | Should -Be 'InvalidArgument'
    }
    It 'refuses what is longer than a request can be, and the program goes on' {
        $null = Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }
        $first = (Get-RunningProgram).Id
        $caught = Get-Caught { Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; Text = 'x' * 16MB } }
        $caught.FullyQualifiedErrorId | Should -Be 'RequestTooLong,Stead'
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }).Name | Should -Be 'a'
        (Get-RunningProgram).Id | Should -Be $first
    }
    It 'hands over a credential, and shows it nowhere' {
        $login = [pscredential]::new('somebody', (ConvertTo-SecureString 'p"w$(1)' -AsPlainText -Force))
        $shown = & { Get-Caught { Invoke-DscResource Sample -Method Set -Property @{ Name = 'login'; Login = $login } -Verbose -Debug } } *>&1
        $records = $shown | Where-Object { "$_" -like 'the password is*' }
        foreach ($type in 'Verbose', 'Warning', 'Error') { $records.ForEach({ $_.GetType().Name }) | Should -Contain "${type}Record" }
        $all = $shown | ForEach-Object { "$_"; if ($_ -is [System.Management.Automation.ErrorRecord]) { "$($_.Exception)"; "$($_.ErrorDetails)"; $_.FullyQualifiedErrorId } }
        "$all" | Should -Not -BeLike '*p"w*'
    }
    It 'shows no secret in what is said of progress' {
        $shell = [powershell]::Create()
        [void] $shell.AddScript('param($module, $login) Import-Module $module; Invoke-DscResource Sample -Method Set -Property @{ Name = "login"; Login = $login }')
        [void] $shell.AddArgument($module).AddArgument([pscredential]::new('somebody', (ConvertTo-SecureString 'p"w$(1)' -AsPlainText -Force)))
        try { [void] $shell.Invoke() } catch { "$_" | Should -BeLike '*the password is <secureValue>*' }
        $shown = $shell.Streams.Progress.ReadAll() | Where-Object ActivityId -EQ 4
        $shell.Dispose()
        $shown.Activity | Should -BeLike 'the password is *'
        "$($shown.Activity) $($shown.StatusDescription) $($shown.CurrentOperation)" | Should -Not -BeLike '*p"w*'
    }
}

Describe 'Errors' {
    It 'can be caught by the type of the exception, with those within it, stack and place' {
        $caught = try { Invoke-DscResource Sample -Method Get -Property @{ Name = 'missing' } } catch [System.IO.FileNotFoundException] { $_ }
        $caught.Exception.Message | Should -Be 'it is not there'
        $caught.Exception.InnerException | Should -BeOfType InvalidOperationException
        $caught.Exception.Data['stack'] | Should -BeLike '*Sample.psm1: line*'
        $caught.ErrorDetails.Message | Should -BeLike '*Sample.psm1*'
    }
    It 'have the type of an exception that has none within it' {
        $Error.Clear()
        $caught = try { Invoke-DscResource Sample -Method Get -Property @{ Name = 'gone' } } catch [System.IO.FileNotFoundException] { $_ }
        $caught.Exception.Message | Should -Be 'gone'
        $Error.Count | Should -Be 1
    }
    It 'are those of this process where it has no such type, or cannot make one: <_>' -ForEach 'own type', 'aggregate' {
        $Error.Clear()
        $caught = Get-Caught { Invoke-DscResource Sample -Method Get -Property @{ Name = $_ } }
        $caught.Exception | Should -BeOfType System.Management.Automation.RuntimeException
        $Error.Count | Should -Be 1
    }
    It 'that a Set reported before it ended with another are in that one' {
        $caught = Get-Caught { Invoke-DscResource Sample -Method Set -Property @{ Name = 'end' } }
        "$caught" | Should -BeLike 'the end; before it: the cause*'
    }
    It 'have the id and the category that the resource gave them' {
        $caught = Get-Caught { Invoke-DscResource Sample -Method Get -Property @{ Name = 'busy' } }
        $caught.FullyQualifiedErrorId | Should -Be 'Busy'
        $caught.CategoryInfo.Category | Should -Be 'ResourceBusy'
        $caught.Exception | Should -BeOfType TimeoutException
    }
    It 'are one record each' {
        $errors = $null
        $Error.Clear()
        $null = Get-Caught { Invoke-DscResource Sample -Method Set -Property @{ Name = 'errors' } -ErrorVariable errors; $script:errors = $errors }
        $Error.Count | Should -Be 1
        "$($Error[0])" | Should -BeLike '2 errors: the first; the second*'
    }
    It 'end the command whatever -ErrorAction says: <_>' -ForEach 'SilentlyContinue', 'Ignore' {
        { Invoke-DscResource Sample -Method Get -Property @{ Name = 'busy' } -ErrorAction $_ } | Should -Throw
    }
    It 'that a Test survived are reported, and it has a verdict' {
        $result = Invoke-DscResource Sample -Method Test -Property @{ Name = 'errors' } -ErrorVariable errors 2>$null 3>$null
        $result.InDesiredState | Should -BeTrue
        "$errors" | Should -Be 'a survived error'
    }
    It 'say how to name the program' {
        $former = $env:STEAD
        $env:STEAD = '/no/stead'
        try { (Get-Caught { Get-DscResource }).FullyQualifiedErrorId | Should -Be 'ProgramNotFound,Stead' } finally { $env:STEAD = $former }
    }
}

Describe 'The program' {
    BeforeAll { $stead = $env:STEAD }
    AfterEach {
        $env:STEAD = $stead
        & (Get-Module Stead) { $script:patience = 30 }
    }
    It 'that <Name> is not understood' -ForEach @(
        @{ Name = 'ends at once'; Script = 'echo why >&2; exit 3' }, @{ Name = 'reads nothing'; Script = 'exec 0<&-; sleep 0.2; exit 3' }
        @{ Name = 'says nothing'; Script = 'sleep 1000' }, @{ Name = 'greets otherwise'; Script = 'echo hello; sleep 1000' }
    ) {
        & (Get-Module Stead) { $script:patience = 2 }
        $env:STEAD = New-Program 'not-understood' $Script
        (Get-Caught { Get-DscResource Sample }).FullyQualifiedErrorId | Should -Be 'ProgramNotUnderstood,Stead'
        $env:STEAD = $stead
        (Get-DscResource Sample).Name | Should -Be 'Sample'
    }
    It 'that says nothing holds nobody up who stops' {
        $file = Join-Path $TestDrive 'asked'
        $env:STEAD = New-Program 'mute' "read line; echo `$line > '$file'; sleep 1000"
        $shell = [powershell]::Create()
        [void] $shell.AddScript('param($module) Import-Module $module; Get-DscResource')
        [void] $shell.AddArgument((Join-Path $PSScriptRoot '../Stead/Stead.psd1'))
        $null = $shell.BeginInvoke()
        while (-not (Test-Path $file)) { Start-Sleep -Milliseconds 20 }
        $env:STEAD = $stead
        $shell.BeginStop($null, $null).AsyncWaitHandle.WaitOne(15000) | Should -BeTrue
        (Get-DscResource Sample).Name | Should -Be 'Sample'
    }
    It 'that <Name> fails who waits for it' -ForEach @(
        @{ Name = 'does not know who asked'; Answer = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'; Id = 'ProgramNotUnderstood,Stead' }
        @{ Name = 'answers no JSON'; Answer = 'no'; Id = 'ProgramEnded,Stead' }
    ) {
        $env:STEAD = New-Program "no-answer-$Id" "read line; echo '{`"result`":1}'; read line; echo '$Answer'; while read line; do :; done"
        $shell = [powershell]::Create()
        [void] $shell.AddScript('param($module) Import-Module $module; try { Get-DscResource } catch { $_.FullyQualifiedErrorId }')
        [void] $shell.AddArgument((Join-Path $PSScriptRoot '../Stead/Stead.psd1'))
        $running = $shell.BeginInvoke()
        $running.AsyncWaitHandle.WaitOne(20000) | Should -BeTrue
        $shell.EndInvoke($running) | Should -Be $Id
    }
    It 'that is to end while a call is prepared does not lose it' {
        $null = Get-DscResource Sample
        # Another runspace removes the module at this moment.
        & (Get-Module Stead) {
            function script:Get-Location {
                Close-Server ([AppDomain]::CurrentDomain.GetData('Stead.Server'))
                $null = [AppDomain]::CurrentDomain.GetData('Stead.Server').Process.WaitForExit(20000)
                Microsoft.PowerShell.Management\Get-Location @args
            }
        }
        try { (Get-DscResource Sample).Name | Should -Be 'Sample' } finally { Import-Module (Join-Path $PSScriptRoot '../Stead/Stead.psd1') -Force }
    }
    It 'that is to end takes no more calls, and none is lost' {
        $module = Join-Path $PSScriptRoot '../Stead/Stead.psd1'
        $failed = 1..4 | ForEach-Object -ThrottleLimit 4 -Parallel {
            foreach ($round in 1..15) {
                Import-Module $using:module
                try { $null = Get-DscResource Sample } catch { "$($_.FullyQualifiedErrorId): $_" }
                Remove-Module Stead
            }
        }
        $failed | Should -BeNullOrEmpty
        Import-Module $module -Force
    }
    It 'is started once, and again when it has ended' {
        $null = Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }
        $first = Get-RunningProgram
        $null = Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }
        (Get-RunningProgram).Id | Should -Be $first.Id
        $first.Kill()
        $first.WaitForExit()
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }).Name | Should -Be 'a'
        (Get-RunningProgram).Id | Should -Not -Be $first.Id
    }
    It 'answers all runspaces, and calls are carried out side by side' {
        $meeting = (New-Item -ItemType Directory (Join-Path $TestDrive 'meeting')).FullName
        $module = Join-Path $PSScriptRoot '../Stead/Stead.psd1'
        $seen = 1..2 | ForEach-Object -ThrottleLimit 2 -Parallel {
            Import-Module $using:module
            $null = Invoke-DscResource Sample -Method Get -Property @{ Name = 'meet'; Path = $using:meeting }
            [AppDomain]::CurrentDomain.GetData('Stead.Server').Process.Id
        }
        @(Get-ChildItem $meeting).Count | Should -Be 2
        @($seen | Sort-Object -Unique) | Should -Be (Get-RunningProgram).Id
    }
    It 'passes messages on while the resource is at work' {
        $file = Join-Path $TestDrive 'live'
        # What the resource waits for is made by who sees its warning.
        Invoke-DscResource Sample -Method Test -Property @{ Name = 'live'; Path = $file } *>&1 |
            ForEach-Object { if ($_ -is [System.Management.Automation.WarningRecord]) { $null = New-Item -Force $file } }
        Test-Path $file | Should -BeTrue
    }
    It 'ends a call that is stopped, and goes on' {
        $file = Join-Path $TestDrive 'started'
        $shell = [powershell]::Create()
        [void] $shell.AddScript('param($module, $file) Import-Module $module; Invoke-DscResource Sample -Method Get -Property @{ Name = "for ever"; Path = $file }')
        [void] $shell.AddArgument((Join-Path $PSScriptRoot '../Stead/Stead.psd1')).AddArgument($file)
        $running = $shell.BeginInvoke()
        while (-not (Test-Path $file) -or -not (Get-Content $file)) { Start-Sleep -Milliseconds 20 }
        $shell.Stop()
        { $shell.EndInvoke($running) } | Should -Throw
        $process = Get-Content $file
        while (Test-Path "/proc/$process") { Start-Sleep -Milliseconds 20 }
        $shell.Dispose()
        (Invoke-DscResource Sample -Method Get -Property @{ Name = 'a' }).Name | Should -Be 'a'
    }
    It 'changes nothing with -WhatIf' {
        $notes = Join-Path $TestDrive 'what-if'
        Invoke-DscResource Sample -Method Set -Property @{ Name = 'note'; Text = $notes } -WhatIf | Should -BeNullOrEmpty
        Test-Path $notes | Should -BeFalse
    }
    It 'finds a module that was installed a moment ago' {
        $modules = Join-Path $TestDrive 'modules'
        $former = $env:PSModulePath
        $env:PSModulePath = $modules + [System.IO.Path]::PathSeparator + $former
        try {
            Get-Caught { Invoke-DscResource Late -Method Test -Property @{ Name = 'a' } } | Should -Not -BeNullOrEmpty
            $null = New-Item -ItemType Directory (Join-Path $modules 'Late')
            $text = Get-Content -Raw (Join-Path $PSScriptRoot 'modules/Twin1/Twin1.psm1')
            Set-Content (Join-Path $modules 'Late/Late.psm1') $text.Replace('Twin', 'Late')
            Set-Content (Join-Path $modules 'Late/Late.psd1') "@{ RootModule = 'Late.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = 'Late' }"
            (Invoke-DscResource Late -Method Test -Property @{ Name = 'a' }).InDesiredState | Should -BeTrue
        }
        finally { $env:PSModulePath = $former }
    }
    It 'ends with the module, and is started by the next import' {
        $null = Get-DscResource Sample
        $program = Get-RunningProgram
        Remove-Module Stead
        $program.WaitForExit(60000) | Should -BeTrue
        Import-Module (Join-Path $PSScriptRoot '../Stead/Stead.psd1')
        (Get-DscResource Sample).Name | Should -Be 'Sample'
    }
}

Describe 'Get-DscResource' {
    It 'shows the properties with type, values and whether they are mandatory' {
        $sample = Get-DscResource Sample
        ($sample.Properties | Where-Object Name -EQ 'Name').IsMandatory | Should -BeTrue
        ($sample.Properties | Where-Object Name -EQ 'Small').PropertyType | Should -Be '[uint16]'
        ($sample.Properties | Where-Object Name -EQ 'Ensure').Values | Should -Be 'Present', 'Absent'
        ($sample.Properties | Where-Object Name -EQ 'Kind').Values | Should -Be 'Low', 'High'
        $sample.Properties.Name | Should -Not -Contain 'Seen'
        $sample.Module.Name, $sample.CompanyName | Should -Be 'Sample', 'a company'
    }
    It 'understands wildcards, and reports a name that is not there as the caller wants it' {
        (Get-DscResource -Module Tw*).ModuleName | Sort-Object | Should -Be 'Twin1', 'Twin2'
        (Get-DscResource -Module 'Twin[2]').ModuleName | Should -Be 'Twin2'
        (Get-DscResource Tw*).ModuleName | Sort-Object | Should -Be 'Twin1', 'Twin2'
        Get-DscResource NoSuch -ErrorAction SilentlyContinue | Should -BeNullOrEmpty
        { Get-DscResource NoSuch -ErrorAction Stop } | Should -Throw -ErrorId '*CheckResourceFound'
    }
    It 'keeps a text that looks like a date' {
        (Get-DscResource -Module Twin1).CompanyName | Should -BeExactly '2024-01-01T00:00:00+02:00'
    }
    It 'is shown as a table' {
        Get-DscResource Sample | Out-String -Width 120 | Should -Match 'Sample +Sample +2\.12\.0 +\{Name, '
    }
    It 'shows how a resource is written' {
        Get-DscResource Sample -Syntax | Should -Match '(?s)^Sample \[String\] #ResourceName.*\[Ensure = \[string\] \{ Present \| Absent \}\]'
    }
}

Describe 'Completion and help' {
    It 'completes <Line>' -ForEach @(
        @{ Line = 'Invoke-DscResource -Name Samp'; Text = 'Sample' }, @{ Line = 'Get-DscResource -Module Twin'; Text = 'Twin1' }
        @{ Line = 'Invoke-DscResource -Name Sample -Property '; Text = "@{ Name = ''; Ensure = 'Absent' }" }
    ) {
        $found = [System.Management.Automation.CommandCompletion]::CompleteInput($Line, $Line.Length, $null).CompletionMatches
        $found.CompletionText | Should -Contain $Text
    }
    It 'completes within the table of <Line>' -ForEach @(
        @{ Line = 'Invoke-DscResource -Name Sample -Property @{ En'; Text = 'Ensure = '; Begun = 2 }
        @{ Line = "Invoke-DscResource Sample -Method Get -Property @{ Name = 'a'; "; Text = 'Ensure = '; Begun = 0 }
        @{ Line = "Invoke-DscResource -Name Sample -Property @{ Name = 'a'; Ensure = 'P"; Text = "'Present'"; Begun = 2 }
        @{ Line = 'Invoke-DscResource -Name Sample -Property @{ Ensure = '; Text = "'Absent'"; Begun = 0 }
    ) {
        $found = TabExpansion2 $Line $Line.Length
        $found.CompletionMatches.CompletionText | Should -Contain $Text
        $found.CompletionMatches.ListItemText | Should -Not -Contain 'Name'
        $found.ReplacementIndex, $found.ReplacementLength | Should -Be ($Line.Length - $Begun), $Begun
    }
    It 'leaves all other completion as it is' {
        (TabExpansion2 'Get-ChildIt' 11).CompletionMatches.CompletionText | Should -Contain 'Get-ChildItem'
        (TabExpansion2 '@{ En' 5).CompletionMatches.CompletionText | Should -Not -Contain 'Ensure = '
        $own = $function:TabExpansion2
        try {
            Remove-Module Stead
            (TabExpansion2 'Invoke-DscResource -Name Sample -Property @{ En' 47).CompletionMatches.CompletionText | Should -Not -Contain 'Ensure = '
        }
        finally { Import-Module $module -Force -Global }
        "$function:TabExpansion2" | Should -BeExactly "$own"
    }
    It 'has examples in the help of <_> that run' -ForEach 'Invoke-DscResource', 'Get-DscResource' {
        $examples = (Get-Help $_ -Examples).examples.example
        $before = $env:PSModulePath
        $folder = New-Item -ItemType Directory -Path (Join-Path $TestDrive "$_/Sample")
        Set-Content (Join-Path $folder 'Sample.psd1') "@{ RootModule = 'Sample.psm1'; ModuleVersion = '1.2.0'; DscResourcesToExport = @('SampleFile') }"
        Set-Content (Join-Path $folder 'Sample.psm1') '[DscResource()] class SampleFile { [DscProperty(Key)] [string] $Path
            [SampleFile] Get() { return $this } [bool] Test() { return $true } [void] Set() { } }'
        try {
            $env:PSModulePath = $folder.Parent.FullName
            foreach ($example in $examples) { & ([scriptblock]::Create($example.code)) | Should -Not -BeNullOrEmpty -Because $example.code }
        }
        finally { $env:PSModulePath = $before }
    }
    It 'explains <_> with examples' -ForEach 'Invoke-DscResource', 'Get-DscResource' {
        $help = Get-Help $_ -Full
        $help.examples.example.Count | Should -BeGreaterThan 1
        foreach ($parameter in $help.parameters.parameter | Where-Object Name -NotIn 'WhatIf', 'Confirm') { $parameter.description | Should -Not -BeNullOrEmpty }
    }
    It 'has nothing that an analyzer of scripts finds' {
        $text = [System.Management.Automation.Language.Parser]::ParseFile((Join-Path $PSScriptRoot '../Stead/Stead.psm1'), [ref] $null, [ref] $null)
        $all = $text.FindAll({ $true }, $true) | Group-Object { $_.GetType().Name } -AsHashTable
        $catches = @($all.CatchClauseAst | Where-Object { -not $_.Body.Statements.Count })
        # That one is PowerShell's own.
        $globals = @($all.VariableExpressionAst | Where-Object { $_.VariablePath.IsGlobal -and "$_" -ne '$global:Error' })
        $compared = @($all.BinaryExpressionAst | Where-Object { "$($_.Operator)" -match 'eq$|ne$' -and "$($_.Right)" -eq '$null' })
        $aliases = @($all.CommandAst | Where-Object { $name = $_.GetCommandName(); $name -and (Test-Path -LiteralPath "Alias:$name") })
        $verbs = @($all.FunctionDefinitionAst | Where-Object { $_.Name -match '-' -and $_.Name.Split('-')[0] -notin (Get-Verb).Verb })
        $nouns = @($all.FunctionDefinitionAst | Where-Object { $_.Name -match '-.*[^su]s$' })
        # Those change the state of the system by their name, and would take -WhatIf.
        $changes = @($all.FunctionDefinitionAst | Where-Object { $_.Name -match '^(New|Set|Remove|Start|Stop|Restart|Reset|Update)-' })
        $positions = @($all.CommandAst | Where-Object {
                $count = 0
                $before = $null
                foreach ($word in $_.CommandElements | Select-Object -Skip 1) {
                    if ($word -isnot [System.Management.Automation.Language.CommandParameterAst] -and -not $before) { $count++ }
                    $before = if ($word -is [System.Management.Automation.Language.CommandParameterAst] -and -not $word.Argument) { $word }
                }
                $count -gt 2 -and $_.GetCommandName() -match '-'
            })
        $found = $catches + $globals + $compared + $aliases + $verbs + $nouns + $changes + $positions
        $found | ForEach-Object { "$($_.Extent.StartLineNumber): $($_.Extent.Text.Split("`n")[0])" } | Should -BeNullOrEmpty
    }
    It 'has a manifest that is valid' { (Test-ModuleManifest $module).PrivateData.PSData.Tags | Should -Contain 'DSC' }
}
