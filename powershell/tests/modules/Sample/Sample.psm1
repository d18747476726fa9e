# A resource that does what its key names.

class OwnError : Exception { OwnError([string] $text) : base($text) { } }

enum Kind { Low; High }

class Inner {
    [DscProperty()] [string] $Text
    [DscProperty()] [int] $Count
}

[DscResource()]
class Sample {
    [DscProperty(Key)] [string] $Name
    [DscProperty()] [ValidateSet('Present', 'Absent')] [string] $Ensure = 'Present'
    [DscProperty()] [string] $Text
    [DscProperty()] [datetime] $When
    [DscProperty()] [uint16] $Small
    [DscProperty()] [int[]] $Numbers
    [DscProperty()] [Kind] $Kind
    [DscProperty()] [Inner] $Inner
    [DscProperty()] [hashtable] $Table
    [DscProperty()] [pscredential] $Login
    [DscProperty()] [string] $Path
    [DscProperty(NotConfigurable)] [string] $Seen

    [Sample] Get() {
        $this.Note('Get')
        switch ($this.Name) {
            'slow' { [System.Threading.Thread]::Sleep(1000) }
            'user' { $this.Seen = [Environment]::UserName }
            'variable' { $this.Seen = "$env:SAMPLE_ASKED" }
            'location' { $this.Seen = "$(Get-Location)" }
            'progress' {
                Write-Progress -Activity 'Copying' -Status 'one of two' -PercentComplete 50 -Id 3 -CurrentOperation $this.Text -SecondsRemaining 7
                Write-Progress -Activity 'Copying' -Id 3 -Completed
                # One that ends needs no name there.
                if ($global:PSVersionTable.PSVersion -ge '7.6') { Write-Progress -Id 5 -Completed }
            }
            'path' { $this.Seen = $env:PSModulePath }
            'missing' { throw [System.IO.FileNotFoundException]::new('it is not there', [InvalidOperationException]::new('the cause')) }
            'gone' { throw [System.IO.FileNotFoundException]::new('gone') }
            'own type' { throw [OwnError]::new('own') }
            # Can be made only of those within it.
            'aggregate' { throw [AggregateException]::new('several') }
            'busy' { throw [System.Management.Automation.ErrorRecord]::new([TimeoutException]::new('too busy'), 'Busy', 'ResourceBusy', 'x') }
            # Until another call has come: it has a process of its own.
            'meet' { $this.Seen = $this.Meet() }
            'for ever' { [System.IO.File]::WriteAllText($this.Path, "$([Environment]::ProcessId)"); while ($true) { [System.Threading.Thread]::Sleep(20) } }
        }
        return $this
    }

    [bool] Test() {
        $this.Note('Test')
        Write-Verbose 'a verbose message'
        Write-Warning 'a warning'
        Write-Debug 'a debug message'
        Write-Information 'an information'
        if ($this.Name -eq 'errors') { Write-Error 'a survived error' }
        if ($this.Name -eq 'live') {
            while (-not (Test-Path -LiteralPath $this.Path)) { [System.Threading.Thread]::Sleep(20) }
        }
        return $this.Name -ne 'out'
    }

    [void] Set() {
        $this.Note('Set')
        switch ($this.Name) {
            'errors' { Write-Error 'the first'; Write-Error 'the second' }
            'restart' { $global:DSCMachineStatus = 1 }
            'end' { Write-Error 'the cause'; throw 'the end' }
            'login' {
                $password = $this.Login.GetNetworkCredential().Password
                if ($password -cne 'p"w$(1)') { throw 'another password' }
                Write-Verbose "the password is $password"
                Write-Progress -Activity "the password is $password" -Status "it is $password" -CurrentOperation $password -Id 4
                Write-Warning "the password is $password"
                throw "the password is $password"
            }
        }
    }

    [void] Note([string] $method) {
        if ($this.Text -and $this.Name -eq 'note') { [System.IO.File]::AppendAllText($this.Text, "$method`n") }
    }

    [string] Meet() {
        [System.IO.File]::WriteAllText((Join-Path $this.Path "$([Environment]::ProcessId)"), '')
        while (@(Get-ChildItem -LiteralPath $this.Path).Count -lt 2) { [System.Threading.Thread]::Sleep(20) }
        return "$([Environment]::ProcessId)"
    }
}
