# A module whose resource keeps what it is given as Windows does: in capitals, trimmed, in another order, dates in local time. It
# notes each call.
enum Ensure { Present; Absent }
enum Level { Low; High }

class Part {
    [string] $Name
    [string] $Value
    [int] $Free
}

[DscResource()]
class Norm {
    [DscProperty(Key)] [string] $Key
    [DscProperty()] [Ensure] $Ensure = 'Present'
    [DscProperty()] [string] $Text
    [DscProperty()] [ValidateSet('String', 'DWord')] [string] $Kind
    [DscProperty()] [Level] $Level
    [DscProperty()] [string[]] $Labels
    [DscProperty()] [hashtable] $Table
    [DscProperty()] [Part] $Part
    [DscProperty()] [Part[]] $Parts
    [DscProperty()] [Nullable[datetime]] $Since
    [DscProperty()] [long] $Count
    [DscProperty()] [double] $Ratio
    [DscProperty()] [bool] $Flag
    [DscProperty()] [string] $Token
    [DscProperty()] [securestring] $Pin
    [DscProperty()] [pscredential] $Login
    [DscProperty()] [bool] $Force
    [DscProperty()] [string] $Fails

    hidden [string] File() { return "FOLDER/$($this.Key.ToUpper())" }
    hidden [void] Note([string] $method) { Add-Content -LiteralPath 'FOLDER/calls' -Value "$method $($this.Key)" }

    [Norm] Get() {
        $this.Note('Get')
        $found = [Norm]::new()
        $found.Key = $this.Key.ToUpper()
        $found.Ensure = 'Absent'
        if (-not (Test-Path -LiteralPath $this.File())) { return $found }
        $kept = Import-Clixml -LiteralPath $this.File()
        $found.Ensure = 'Present'
        foreach ($name in 'Text', 'Kind', 'Level', 'Labels', 'Since', 'Count', 'Ratio', 'Flag') { if ($null -ne $kept[$name]) { $found.$name = $kept[$name] } }
        $found.Table = $kept['Table']
        if ($kept['Part']) { $found.Part = [Part] $kept['Part'] }
        if ($kept['Parts']) { $found.Parts = @($kept['Parts'] | ForEach-Object { [Part] $_ }) }
        if ([string] $kept['Pin']) { $found.Pin = ConvertTo-SecureString $kept['Pin'] -AsPlainText -Force }
        return $found
    }

    [bool] Test() {
        $this.Note('Test')
        if ($this.Fails -eq 'Test') { throw 'no test today' }
        if (-not (Test-Path -LiteralPath $this.File())) { return $this.Ensure -eq 'Absent' }
        $kept = Import-Clixml -LiteralPath $this.File()
        return $this.Ensure -eq 'Present' -and [string] $kept['Token'] -ceq [string] $this.Token -and [string] $kept['Pin'] -ceq "$(Read-Secret $this.Pin)"
    }

    [void] Set() {
        $this.Note('Set')
        if ($this.Fails -eq 'Set') { throw "no set today: $($this.Token)" }
        if ($this.Ensure -eq 'Absent') { Remove-Item -LiteralPath $this.File(); return }
        $kept = @{ Token = $this.Token; Pin = "$(Read-Secret $this.Pin)"; Count = $this.Count; Ratio = $this.Ratio; Flag = $this.Flag; Level = "$($this.Level)" }
        # As it came, for what is to be shown of it.
        $kept['Given'] = $this.Text
        if ($this.Text) { $kept['Text'] = $this.Text.Trim().ToUpper() }
        if ($this.Kind) { $kept['Kind'] = if ($this.Kind -eq 'DWord') { 'DWord' } else { 'String' } }
        if ($this.Labels) { $kept['Labels'] = @($this.Labels | ForEach-Object { $_.ToUpper() } | Sort-Object -Descending) }
        if ($this.Table) { $kept['Table'] = Convert-Table $this.Table }
        if ($this.Part) { $kept['Part'] = Convert-Part $this.Part }
        if ($this.Parts) { $kept['Parts'] = @($this.Parts | Sort-Object Name -Descending | ForEach-Object { Convert-Part $_ }) }
        if ($this.Since) { $kept['Since'] = $this.Since.ToLocalTime() }
        if ($this.Login) { $kept['Login'] = $this.Login.UserName + ':' + (Read-Secret $this.Login.Password) }
        Export-Clixml -InputObject $kept -LiteralPath $this.File() -Depth 5
    }
}

function Read-Secret([securestring] $secret) { if ($secret) { return [pscredential]::new('x', $secret).GetNetworkCredential().Password } }

function Convert-Part([Part] $part) { return @{ Name = "$($part.Name)".ToUpper(); Value = "$($part.Value)".ToUpper(); Free = 7 } }

function Convert-Table([hashtable] $table) {
    $kept = @{}
    foreach ($entry in $table.GetEnumerator()) {
        $kept[$entry.Key.ToUpper()] = if ($entry.Value -is [hashtable]) { Convert-Table $entry.Value } else { "$($entry.Value)".Trim().ToUpper() }
    }
    return $kept
}
