dsc_file { 'an example':
  dsc_ensure  => 'Present',
  dsc_path    => '/tmp/example',
  dsc_content => "An example.\n",
  dsc_mode    => '0644',
}
