@{
    RootModule           = 'Stead.psm1'
    ModuleVersion        = '0.1.0'
    GUID                 = '5b0a6e6e-2f0c-4a0b-9d7a-7a5c1de3c1f4'
    Author               = 'stead'
    CompanyName          = 'stead'
    Copyright            = '(c) the authors of stead'
    Description          = 'Invoke-DscResource and Get-DscResource on top of stead.'
    CompatiblePSEditions = @('Core')
    PowerShellVersion    = '7.2'
    FunctionsToExport    = @('Get-DscResource', 'Invoke-DscResource')
    CmdletsToExport      = @()
    AliasesToExport      = @()
    VariablesToExport    = @()
    FormatsToProcess     = @('Stead.format.ps1xml')
    PrivateData          = @{
        PSData = @{
            Tags         = @('DSC', 'DesiredStateConfiguration', 'Linux', 'PSEdition_Core')
            LicenseUri   = 'https://www.apache.org/licenses/LICENSE-2.0'
            ReleaseNotes = 'See CHANGELOG.md of stead.'
        }
    }
}
