@{ RootModule = 'Twin1.psm1'; ModuleVersion = '1.0'; CompanyName = '2024-01-01T00:00:00+02:00'; DscResourcesToExport = 'Twin' }
