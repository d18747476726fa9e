# frozen_string_literal: true

require 'open3'
require 'tmpdir'
require_relative 'puppet_run'

RSpec.configure(&:disable_monkey_patching!)

# docs/puppet.md, section by section: its files are written and its commands run, in the order in which they stand there.
RSpec.describe 'the guide' do
  engine = ENV.fetch('STEAD_TEST_ENGINE', nil)
  shell = ENV.fetch('STEAD_TEST_PWSH', nil)
  repository = File.expand_path('../..', __dir__)
  sections = File.read(File.join(repository, 'docs/puppet.md')).split(/^## /).drop(1)
  blocks = sections.to_h { |section| [section.lines.first.chomp, section.scan(/^```(\S+)[^\n]*\n(.*?)^```$/m)] }

  around do |example|
    skip 'STEAD_TEST_ENGINE names no engine' if engine.nil?
    Dir.mktmpdir('stead') { |directory| Dir.chdir(@directory = directory) { example.run } }
  end

  before do
    FileUtils.mkdir_p(%w[bin puppet])
    File.symlink(engine, 'bin/stead')
    %w[steadlib adapter].each { |name| FileUtils.cp_r(File.join(repository, 'puppet', name), 'puppet') }
  end

  # What is written to /tmp in the guide stays in the directory of the test.
  define_method(:here) { |text| text.gsub('/tmp/motd', "#{@directory}/motd").gsub('/home/you', @directory) }

  define_method(:environment) do
    path = ["#{@directory}/bin", shell && File.dirname(shell), ENV.fetch('PATH')].compact.join(':')
    { 'PATH' => path, 'HOME' => @directory, 'STEAD_ENGINE' => engine, 'STEAD_STATE' => "#{@directory}/state",
      'POWERSHELL_TELEMETRY_OPTOUT' => '1' }
  end

  # Writes a file that its first line or the text around it names.
  def write(language, text)
    name = text[/\A# (\S+\.\S+)$/, 1] || (language == 'puppet' ? 'site.pp' : raise("a block of #{language} names no file"))
    FileUtils.mkdir_p(File.dirname(name))
    File.write(name, here(text))
  end

  def commands(language, text)
    language == 'console' ? text.scan(/^\$ (.*)$/).join("\n") : text
  end

  # Runs commands as in the shell that ran the former ones, of which what they exported is left.
  def run_in_shell(commands, former)
    exports = former.join("\n").scan(/^export .*$/).join("\n")
    output, status = Open3.capture2e(environment, 'bash', '-euo', 'pipefail', '-c', here("#{exports}\n#{commands}"))
    # With 2 a plan says that there is something to do.
    expect(status.exitstatus).to eq(0).or(eq(2)), "#{commands}\n#{output}"
    output
  end

  # @return [Array<String>] what each block of commands put out
  def run_all(blocks)
    former = []
    blocks.filter_map do |language, text|
      next write(language, text) && nil unless %w[console sh].include?(language)

      run_in_shell(commands(language, text), former).tap { former << commands(language, text) }
    end
  end

  it 'leads to the first resource that is managed' do
    outputs = run_all(blocks.fetch('Manage your first resource with Puppet'))
    expect(outputs[1].scan("defined 'ensure' as 'present'").length).to eq(1)
    expect(outputs[2]).to match(/content => "?'?Hello/).or match(/ensure\s+=> 'present'/)
    expect(File.exist?('motd')).to be(false)
  end

  it 'leads from Puppet.Dsc to stead' do
    run_all(blocks.fetch('From Puppet.Dsc to stead'))
    expect(File.exist?('modules/sample/lib/puppet/type/dsc_samplefile.rb')).to be(true)
    skip 'STEAD_TEST_PWSH names no PowerShell' if shell.nil?
    FileUtils.cp_r('puppet/steadlib', 'modules')
    File.write('x.pp', "dsc_samplefile { 'x': dsc_path => '/x', dsc_level => 3 }")
    output, = Open3.capture2e(environment.merge('PSModulePath' => "#{@directory}/powershell"),
                              'puppet', 'apply', '--facts_terminus', 'memory', '--modulepath', 'modules', 'x.pp')
    expect(output).not_to match(/Error/)
  end

  it 'leads to types of Puppet in documents' do
    run_all(blocks.fetch('Types of Puppet in documents'))
  end

  it 'has no other examples that nobody runs' do
    others = blocks.except('Manage your first resource with Puppet', 'From Puppet.Dsc to stead', 'Types of Puppet in documents')
    expect(others.values.flatten(1)).to eq([])
  end
end
