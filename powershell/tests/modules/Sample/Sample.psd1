@{
    RootModule           = 'Sample.psm1'
    ModuleVersion        = '2.12.0'
    GUID                 = 'e2b1f6a0-4a55-4d1e-8f6c-0d6f6d2a7c11'
    Author               = 'somebody'
    CompanyName          = 'a company'
    DscResourcesToExport = 'Sample'
}
