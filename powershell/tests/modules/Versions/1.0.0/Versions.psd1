@{ RootModule = 'Versions.psm1'; ModuleVersion = '1.0.0'; DscResourcesToExport = 'Versioned' }
