stead_file { '/tmp/example':
  ensure  => present,
  content => "An example.\n",
  mode    => '0644',
}
