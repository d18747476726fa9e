# frozen_string_literal: true

require 'tmpdir'
require_relative 'puppet_run'

engines = { 'the fake engine' => PuppetRun::FAKE, 'the engine' => ENV.fetch('STEAD_TEST_ENGINE', nil) }
warn 'skipped: runs with the real engine; STEAD_TEST_ENGINE does not name it' if engines['the engine'].nil?

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.around { |example| Dir.mktmpdir('stead') { |directory| example.run(@run = PuppetRun.new(directory, engine: engine)) } }
end

RSpec.shared_examples 'a type of Puppet' do
  it 'creates, and is silent in the next run' do
    manifest = "stead_file { '@/a': content => 'one', mode => '0644' }"
    first = run.apply(manifest)
    expect(first.lines).to include(%r{Stead_file\[.*\]/ensure: defined 'ensure' as 'present'}, /Creating: Finished/)
    expect(first.code).to eq(2)
    expect(run.requests).to eq(['initialize', 'test @/a', 'set @/a']) if run.fake?
    second = run.apply(manifest)
    expect([second.lines, second.code]).to eq([[], 0])
    expect(run.requests).to eq(['initialize', 'test @/a']) if run.fake?
  end

  it 'shows drift with the former and the desired value, and corrects it' do
    run.apply("stead_file { '@/a': content => 'one', mode => '0644' }")
    drifted = "stead_file { '@/a': content => 'two', mode => '0644' }"
    noop = run.apply(drifted, '--noop')
    expect(noop.lines).to include(/content: current_value 'one', should be 'two' \(noop\)/)
    expect(noop.code).to eq(0)
    result = run.apply(drifted)
    expect(result.lines).to include(/content: content changed 'one' to 'two'/, /Updating: Finished/)
    expect(result.lines).not_to include(/mode/)
    expect(run.apply(drifted).lines).to eq([])
  end

  it 'deletes, and is silent in the next run' do
    run.apply("stead_file { '@/a': content => 'one' }")
    absent = "stead_file { '@/a': ensure => absent }"
    expect(run.apply(absent).lines).to include(/ensure: undefined 'ensure' from 'present'/, /Deleting: Finished/)
    expect(run.apply(absent).lines).to eq([])
  end

  it 'takes the manifests of Puppet.Dsc' do
    manifest = "dsc_file { 'x': dsc_ensure => 'present', dsc_path => '@/a', dsc_content => 'one', dsc_timeout => 60 }"
    result = run.apply(manifest)
    expect(result.lines).to include(/dsc_ensure: dsc_ensure changed 'Absent' to 'present'/, /Creating: Finished/)
    expect(run.apply(manifest).lines).to eq([])
    expect(run.apply(manifest.sub("'present'", "'Absent'")).lines).to include(/changed 'Present' to 'Absent'/, /Deleting: Finished/)
  end

  it 'shows an instance with `puppet resource`' do
    run.apply("stead_file { '@/a': content => 'one', mode => '0600' }")
    result = run.puppet('resource', 'stead_file', File.join(run.files, 'a'))
    expect(result.text).to match(/ensure\s*=> 'present'.*mode\s*=> '0600'/m)
    expect(result.code).to eq(0)
  end

  it 'works with strict checks' do
    manifest = "stead_file { '@/a': content => 'one' } dsc_file { 'x': dsc_path => '@/b', dsc_content => 'one' }"
    expect(run.apply(manifest, '--strict', 'error').code).to eq(2)
    second = run.apply(manifest, '--strict', 'error')
    expect([second.lines, second.code]).to eq([[], 0])
  end

  it 'fails what cannot be done, with the reason, and skips what depends on it' do
    bad = run.fake? ? "'@/refused': " : "'@/a': source => '@/nowhere', "
    result = run.apply("stead_file { #{bad} } -> notify { 'after': }")
    expect(result.code).to eq(6)
    expect(result.lines).to include(/Error: .*(E0801: the disk is full|nowhere)/,
                                    /Notify\[after\]: Skipping because of failed dependencies/)
  end

  it 'keeps a Sensitive value to itself' do
    manifest = "stead_file { '@/a': content => Sensitive('CANARY-%s') }"
    first = run.apply(format(manifest, 'one'), '--debug')
    expect(first.code).to eq(2)
    second = run.apply(format(manifest, 'two'), '--debug')
    expect(second.lines).to include(/content: changed \[redacted\] to \[redacted\]/)
    expect(run.apply(format(manifest, 'two')).lines).to eq([])
    expect(first.text + second.text + File.read(File.join(run.directory, 'var/state/last_run_report.yaml'))).not_to include('CANARY')
  end
end

engines.compact.each do |name, path|
  RSpec.describe "puppet apply with #{name}" do
    let(:engine) { path }
    let(:run) { @run }

    it_behaves_like 'a type of Puppet'
  end
end
