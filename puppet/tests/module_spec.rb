# frozen_string_literal: true

require 'open3'
require 'tmpdir'
require_relative 'puppet_run'

RSpec.describe 'the modules' do
  around { |example| Dir.mktmpdir('stead') { |directory| example.run(@run = PuppetRun.new(directory)) } }

  let(:run) { @run }

  def call(*command, chdir: Dir.pwd)
    text, status = Open3.capture2e(*command, chdir: chdir)
    [text, status.exitstatus]
  end

  def needed(program)
    skip "#{program} is not installed" unless ENV['PATH'].split(':').any? { |path| File.executable?(File.join(path, program)) }
  end

  it 'work with types that were generated for an environment' do
    production = File.join(run.directory, 'environments/production')
    FileUtils.mkdir_p([production, File.join(production, 'manifests')])
    File.symlink(run.modules, File.join(production, 'modules'))
    path = ['--environmentpath', File.dirname(production), '--environment', 'production']
    expect(run.puppet('generate', 'types', *path).code).to eq(0)
    expect(Dir[File.join(production, '.resource_types/*')].map { |file| File.basename(file) })
      .to include('stead_file.pp', 'stead_note.pp', 'dsc_file.pp')
    manifest = File.join(production, 'manifests/site.pp')
    File.write(manifest, "stead_note { 'n': text => 'x' } stead_file { '/nowhere/x': ensure => absent }")
    expect(run.puppet('apply', '--detailed-exitcodes', *path, manifest).code).to eq(2)
    File.write(manifest, "stead_note { 'n': count => 10 }")
    expect(run.puppet('apply', *path, manifest).text).to match(/count/)
  end

  it 'are installed from a tarball' do
    names = %w[steadlib steadfile dscfile]
    names.each do |name|
      call('tar', 'czhf', File.join(run.directory, "#{name}.tar.gz"), '--transform', "s,^\\.,stead-#{name}-0.1.0,", '.',
           chdir: File.join(run.modules, name))
    end
    target = File.join(run.directory, 'installed')
    names.each do |name|
      archive = File.join(run.directory, "#{name}.tar.gz")
      result = run.puppet('module', 'install', '--ignore-dependencies', '--target-dir', target, archive)
      expect([name, result.code]).to eq([name, 0]), result.text
    end
    expect(Dir.children(target)).to match_array(names)
    manifest = File.join(run.directory, 'site.pp')
    File.write(manifest, "stead_file { '#{run.files}/a': content => 'x' }")
    expect(run.puppet('apply', '--detailed-exitcodes', '--modulepath', target, manifest).code).to eq(2)
  end

  it 'are documented by `puppet describe`' do
    text = run.puppet('describe', 'stead_file').text
    expect(text).to match(/^stead_file\n=+\n.*\*\*content\*\*.*\*\*path\*\*/m)
  end

  it 'have examples that Puppet and puppet-lint accept' do
    needed('puppet-lint')
    Dir[File.expand_path('../examples/*/examples/*.pp', __dir__)].each do |path|
      expect(run.puppet('parser', 'validate', path).code).to eq(0)
      expect(call('puppet-lint', '--fail-on-warnings', '--no-autoloader_layout-check', path)).to eq(['', 0])
    end
  end

  it 'have metadata that metadata-json-lint accepts' do
    needed('metadata-json-lint')
    Dir[File.expand_path('../{steadlib,examples/*}/metadata.json', __dir__)].each do |path|
      expect(call('metadata-json-lint', path)).to eq(['', 0])
    end
  end

  it 'have paths that fit into a tarball of the Forge' do
    lengths = Dir[File.expand_path('../{steadlib,examples/*}/metadata.json', __dir__)].flat_map do |metadata|
      package = JSON.parse(File.read(metadata)).values_at('name', 'version').join('-')
      Dir.glob('**/*', base: File.dirname(metadata)).map { |path| File.join(package, path).length }
    end
    expect(lengths.max).to be_between(50, 99)
  end
end
