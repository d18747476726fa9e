@{ RootModule = 'Twin1.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = 'Twin' }
