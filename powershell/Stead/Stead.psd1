@{
    RootModule           = 'Stead.psm1'
    ModuleVersion        = '0.1.0'
    GUID                 = '5b0a6e6e-2f0c-4a0b-9d7a-7a5c1de3c1f4'
    Author               = 'stead'
    Description          = 'Invoke-DscResource and Get-DscResource on top of stead.'
    CompatiblePSEditions = @('Core')
    PowerShellVersion    = '7.2'
    FunctionsToExport    = @('Get-DscResource', 'Invoke-DscResource')
    CmdletsToExport      = @()
    AliasesToExport      = @()
    VariablesToExport    = @()
}
