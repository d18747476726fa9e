@{ RootModule = 'Both.schema.psm1'; ModuleVersion = '1.0' }
