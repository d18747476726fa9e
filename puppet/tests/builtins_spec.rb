# frozen_string_literal: true

require 'open3'
require 'tmpdir'
require_relative 'puppet_run'

RSpec.configure(&:disable_monkey_patching!)

RSpec.describe 'a module of all built-in resources' do
  engine = ENV.fetch('STEAD_TEST_ENGINE', nil)

  around do |example|
    skip 'STEAD_TEST_ENGINE names no engine' if engine.nil?
    Dir.mktmpdir('stead') { |directory| example.run(@run = PuppetRun.new(directory, engine: engine)) }
  end

  before do
    File.delete(File.join(run.modules, 'steadfile'))
    generated = call(engine, 'puppetize', *types(engine), '--module', 'all', '--out', File.join(run.modules, 'all'))
    expect(generated.last).to eq(0), generated.first
  end

  let(:run) { @run }

  # What can be managed below a directory of the test alone.
  let(:manifest) do
    <<~PUPPET
      stead_directory { '@/d': mode => '0755' }
      stead_file { '@/d/f': content => "one\\n", require => Stead_directory['@/d'] }
      stead_symlink { '@/d/s': target => '@/d/f', require => Stead_directory['@/d'] }
      Stead_directory['@/d']
      -> stead_line { 'l': path => '@/d/lines', line => 'second', create => true }
      -> stead_block { 'b': path => '@/d/lines', name_ => 'mine', content => "block\\n" }
      -> stead_ini { 'i': path => '@/d/i.ini', section => 's', key => 'k', value => 'v', create => true }
      -> stead_json { 'j': path => '@/d/j.json', pointer => '/a/b', value => 3, create => true }
      -> stead_toml { 't': path => '@/d/t.toml', pointer => '/a/b', value => 'x', create => true }
      -> stead_yaml { 'y1': path => '@/d/y.yaml', pointer => '/a', value => [1, 2], create => true }
      -> stead_yaml { 'y2': path => '@/d/y.yaml', pointer => '/b', value => 'two' }
      -> stead_limits { 'soft': path => '@/d/limits', domain => 'root', type => 'soft', item => 'nofile', value => '1024' }
      -> stead_limits { 'hard': path => '@/d/limits', domain => 'root', type => 'hard', item => 'nofile', value => '2048' }
      -> stead_command { 'c': test => 'test -e @/d/made', set => 'touch @/d/made' }
    PUPPET
  end

  def call(*command, chdir: Dir.pwd)
    text, status = Open3.capture2e(*command, chdir: chdir)
    [text, status.exitstatus]
  end

  # The built-in resources, but for groups, adapters and what else is made of other resources.
  def types(engine)
    text, = Open3.capture2({ 'DSC_RESOURCE_PATH' => run.directory }, engine, 'resource', 'list', '-o', 'json')
    text.lines.map { |line| JSON.parse(line) }.select { |one| one['kind'].casecmp?('resource') }.map { |one| one['type'] }
  end

  def type_files
    Dir[File.join(run.modules, 'all/lib/puppet/type/*.rb')]
  end

  it 'is one that Puppet, puppet-lint and metadata-json-lint accept' do
    expect(type_files.length).to be > 20
    folder = File.join(run.modules, 'all')
    expect(call('metadata-json-lint', 'metadata.json', chdir: folder)).to eq(['', 0])
    expect(call('puppet-lint', '--fail-on-warnings', '--no-autoloader_layout-check', 'examples', chdir: folder)).to eq(['', 0])
    expect(run.puppet('parser', 'validate', *Dir[File.join(folder, 'examples/*.pp')]).code).to eq(0)
  end

  it 'manages instances, and finds nothing to do in the next run' do
    result = run.apply(manifest)
    expect([result.code, result.lines.grep(/Error|Failed/)]).to eq([2, []])
    second = run.apply(manifest)
    expect([second.lines, second.code]).to eq([[], 0])
    expect(File.read(File.join(run.files, 'd/y.yaml'))).to match(/a: \[1, 2\]\nb: two/)
  end

  it 'comes after the directory that something else manages, wherever it stands' do
    result = run.apply(<<~PUPPET)
      stead_file { '@/f/a/b': content => 'x' } file { '@/f': ensure => directory } stead_directory { '@/f/a': }
      stead_line { 'l': path => '@/g/h/l', line => 'x', create => true } file { '@/g/h': ensure => directory }
      stead_directory { '@/g': }
    PUPPET
    expect([result.code, result.lines.grep(/Error|Skipping/)]).to eq([2, []])
    expect(File.read(File.join(run.files, 'f/a/b'))).to eq('x')
  end

  it 'takes Sensitive for a value of any type and for parts of values' do
    manifest = <<~PUPPET
      stead_command { 'c': test => 'test -e @/made', set => 'printf "$TOKEN" > @/made', environment => { 'TOKEN' => Sensitive('CANARY') } }
      stead_file { '@/x': content => 'c', mode => Sensitive('0600') }
      stead_yaml { 'y': path => '@/y', pointer => '/a', value => Sensitive([1, 'CANARY']), create => true }
    PUPPET
    result = run.apply(manifest, '--debug')
    expect([result.code, result.text.include?('CANARY')]).to eq([2, false])
    expect([File.read(File.join(run.files, 'made')), File.stat(File.join(run.files, 'x')).mode & 0o777]).to eq(['CANARY', 0o600])
    expect(run.apply(manifest).lines).to eq([])
  end

  it 'is the same instance however its path is written' do
    result = run.apply("stead_file { '@/same': content => 'a' } stead_file { '@/./same': content => 'b' }")
    expect(result.text).to match(/manages the same instance/)
  end

  it 'names an instance by the keys of its schema where it has keys that are always there' do
    without = type_files.reject { |path| File.read(path).match?(/behaviour: :namevar,\n *property:/) }
    expect(without.map { |path| File.basename(path, '.rb').delete_prefix('stead_') })
      .to contain_exactly('command', 'hostname', 'ini', 'line', 'locale', 'microsoft_dsc_debug_echo',
                          'microsoft_dsc_transitional_runcommandonset', 'microsoft_osinfo', 'microsoft_process', 'sshdconfig', 'timezone')
  end
end
