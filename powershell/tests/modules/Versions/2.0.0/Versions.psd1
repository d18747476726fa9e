@{ RootModule = 'Versions.psm1'; ModuleVersion = '2.0.0'; DscResourcesToExport = 'Versioned' }
