# frozen_string_literal: true

require 'tmpdir'
require_relative 'powershell_run'

RSpec.configure(&:disable_monkey_patching!)

RSpec.describe 'a resource of PowerShell', skip: PowerShellRun.missing do
  around { |example| Dir.mktmpdir('stead') { |directory| example.run(@run = PowerShellRun.new(directory)) } }

  let(:run) { @run }

  describe 'in another form' do
    rules = {
      'text' => ["dsc_text => 'hello'", "dsc_text => 'HeLLo'"],
      'text-blanks' => ["dsc_text => '  a b '"],
      'text-empty' => ["dsc_text => ''"],
      'text-signs' => ["dsc_text => 'é’\"$(exit) 😀\n\tx'"],
      'set' => ["dsc_kind => 'DWord'", "dsc_kind => 'DWORD'"],
      'enum' => ["dsc_level => 'High'", "dsc_level => 'hIGH'"],
      'list' => ["dsc_labels => ['b', 'A']", "dsc_labels => ['a', 'B']"],
      'list-order' => ["dsc_labels => ['x', 'y', 'z']", "dsc_labels => ['z', 'x', 'y']"],
      'list-one' => ["dsc_labels => ['one']"],
      'list-empty' => ['dsc_labels => []'],
      'table-keys' => ["dsc_table => { 'color' => 'X' }", "dsc_table => { 'Color' => 'X' }"],
      'table-values' => ["dsc_table => { 'A' => 'red' }"],
      'table-number' => ["dsc_table => { 'size' => 3 }", "dsc_table => { 'size' => '3' }"],
      'table-flag' => ["dsc_table => { 'on' => true }"],
      'table-within' => ["dsc_table => { 'in' => { 'a' => 'b' } }"],
      'table-empty' => ['dsc_table => {}'],
      'class' => ["dsc_part => { 'name' => 'n', 'value' => 'v', 'free' => 7 }"],
      'class-unmanaged' => ["dsc_part => { 'name' => 'n' }", "dsc_part => { 'name' => 'N' }"],
      'classes' => ["dsc_parts => [{ 'name' => 'a', 'value' => 'x' }, { 'name' => 'b', 'value' => 'y' }]"],
      'classes-order' => ["dsc_parts => [{ 'name' => 'a' }, { 'name' => 'b' }]", "dsc_parts => [{ 'name' => 'B' }, { 'name' => 'A' }]"],
      'classes-one' => ["dsc_parts => [{ 'name' => 'a' }]"],
      'date' => ["dsc_since => Timestamp('2030-01-02T03:04:05 UTC')"],
      'date-text' => ["dsc_since => '2030-01-02T03:04:05Z'", "dsc_since => '2030-01-02T05:04:05+02:00'"],
      'date-fraction' => ["dsc_since => Timestamp('2030-07-02T03:04:05.25 UTC')"],
      'float' => ['dsc_ratio => 2', 'dsc_ratio => 2.0'],
      'fraction' => ['dsc_ratio => 0.5'],
      'integer' => ['dsc_count => 9007199254740993'],
      'false' => ['dsc_flag => false, dsc_count => 1'],
      'undef' => ['dsc_text => undef, dsc_flag => true'],
      'parameter' => ["dsc_text => 'p', dsc_force => true"],
      'ensure' => ["dsc_ensure => 'Present'", "dsc_ensure => 'present'"],
      'secret-text' => ["dsc_token => Sensitive('tok')"],
      'secret-table' => ["dsc_table => Sensitive({ 'a' => 'b' })"],
      'secret-part' => ["dsc_table => { 'a' => Sensitive('b') }"],
      'secret-string' => ["dsc_pin => Sensitive('1234')"],
      'secret-login' => ["dsc_login => { 'user' => 'u', 'password' => Sensitive('p') }"]
    }

    def catalog(rules, which)
      rules.map { |name, forms| "dsc_norm { '#{name}': dsc_key => '#{name}', #{forms[which] || forms[0]} }" }.join("\n")
    end

    it "is the same in the second run: #{rules.length} rules, each with one Get and, where something changes, one Set" do
      first = run.apply(catalog(rules, 0))
      expect([first.code, first.lines.grep(/Error|Warning/)]).to eq([2, []])
      expect(run.calls).to eq(rules.keys.to_h { |name| [name, %w[Get Set]] })
      [0, 1, 1].each do |which|
        again = run.apply(catalog(rules, which))
        expect([again.lines, again.code]).to eq([[], 0])
        expect(run.calls).to eq(rules.keys.to_h { |name| [name, %w[Get]] })
      end
    end

    it 'is left as it is when something else changes' do
      run.apply("dsc_norm { 'a': dsc_key => 'a', dsc_text => 'hello', dsc_labels => ['x', 'y'], dsc_count => 1 }")
      result = run.apply("dsc_norm { 'a': dsc_key => 'a', dsc_text => 'hello', dsc_labels => ['x', 'y'], dsc_count => 2 }")
      expect(result.lines.grep(/changed/)).to contain_exactly(/dsc_count changed 1 to 2/)
      expect(run.kept('A', 'Given')).to eq('HELLO')
    end
  end

  describe 'is called' do
    let(:manifest) { "dsc_norm { 'a': dsc_key => 'a', dsc_text => 'x', MORE }" }

    def calls_of(more, *options)
      @result = run.apply(manifest.sub('MORE', more), *options)
      run.calls['a']
    end

    it 'as often as is needed' do
      expect(calls_of('dsc_count => 1', '--noop')).to eq(%w[Get])
      expect(calls_of('dsc_count => 1')).to eq(%w[Get Set])
      expect(calls_of('dsc_count => 1')).to eq(%w[Get])
      expect(calls_of('dsc_count => 2')).to eq(%w[Get Set])
      expect(calls_of('dsc_count => 3, stead_verify => true')).to eq(%w[Get Set Get])
      expect(calls_of("dsc_ensure => 'absent'")).to eq(%w[Get Set])
      expect(calls_of("dsc_ensure => 'Absent'")).to eq(%w[Get])
    end

    it 'with its Test where that decides' do
      expect(calls_of("validation_mode => 'resource'")).to eq(%w[Test Get Set])
      expect(calls_of("validation_mode => 'resource'")).to eq(%w[Test Get])
      expect(calls_of("validation_mode => 'resource', dsc_count => 7")).to eq(%w[Test Get])
      expect(@result.code).to eq(0)
    end

    it 'without its Test where the properties decide' do
      expect(calls_of("dsc_fails => 'Test'")).to eq(%w[Get Set])
      expect(@result.code).to eq(2)
    end

    it 'as another user never, and says so' do
      expect(calls_of("dsc_psdscrunascredential => { 'user' => 'u', 'password' => Sensitive('CANARY') }")).to be_nil
      expect(@result.text).to match(/dsc_psdscrunascredential: resources are called as the user who runs Puppet/)
      expect(run.traces('CANARY')).to eq([])
    end

    it 'once for two resources that manage the same' do
      result = run.apply("dsc_norm { 'a': dsc_key => 'c:/Temp', dsc_count => 1 } dsc_norm { 'b': dsc_key => 'C:\\\\temp', dsc_count => 1 }")
      expect(result.text).to match(/dsc_norm\[a\] manages the same instance/)
    end
  end

  describe 'with a secret that it keeps to itself' do
    { 'text' => 'dsc_token => Sensitive(SECRET)', 'a secure string' => 'dsc_pin => Sensitive(SECRET)',
      'a credential' => "dsc_login => { 'user' => 'u', 'password' => Sensitive(SECRET) }" }.each do |kind, attribute|
      it "is changed only where that changed: #{kind}" do
        manifest = "dsc_norm { 'a': dsc_key => 'a', dsc_count => 1, #{attribute} }"
        run.apply(manifest.sub('SECRET', "'CANARY-one'"))
        expect(run.apply(manifest.sub('SECRET', "'CANARY-one'")).lines).to eq([])
        changed = run.apply(manifest.sub('SECRET', "'CANARY-two'"))
        expect(changed.lines).to include(/changed \[redacted\] to \[redacted\]/)
        expect(run.kept('A', 'Token', 'Pin', 'Login')).to include('CANARY-two')
        run.calls
        expect(run.apply(manifest.sub('SECRET', "'CANARY-two'")).lines).to eq([])
        expect(run.calls).to eq('a' => %w[Get])
        expect(run.traces('CANARY')).to eq([])
      end
    end

    it 'is changed where its Test says so' do
      manifest = "dsc_norm { 'a': dsc_key => 'a', validation_mode => 'resource', dsc_pin => Sensitive('CANARY-SECRET') }"
      run.apply(manifest)
      expect(run.apply(manifest).lines).to eq([])
      expect(run.apply(manifest.sub('SECRET', 'other')).code).to eq(2)
      expect(run.apply(manifest.sub('SECRET', 'other')).code).to eq(0)
    end
  end

  describe 'with --debug' do
    let(:kinds) do
      ['uncanonicalized request', 'metadata', 'full script', 'raw JSON answer', 'munged answer', 'canonicalized resource',
       'current state', 'target state']
    end

    it 'shows eight representations in their order' do
      text = run.apply("dsc_norm { 'a': dsc_key => 'a', dsc_text => 'x' }", '--debug').text
      shown = text.scan(/stead dsc_norm\[a\]: (#{kinds.join('|')}):/).flatten
      expect(shown).to eq(kinds + ['full script', 'raw JSON answer'])
    end

    it 'shows scripts that do the same' do
      manifest = "dsc_norm { 'a': dsc_key => 'a', dsc_text => 'it’s', dsc_table => { 'k' => ['v'] }, dsc_flag => true }"
      text = run.apply(manifest, '--debug').text
      get, set = run.scripts(text)
      expect(run.powershell(get)).to include('"Text": "IT’S"', '"Ensure": "Present"')
      File.delete(run.kept_file('A'))
      run.powershell(set)
      expect(JSON.parse(run.powershell(get))).to include('Text' => 'IT’S', 'Flag' => true)
    end

    it 'shows no secret' do
      canaries = Array.new(10) { |at| "CANARY#{at}x'\"é" }
      values = canaries.map { |one| "Sensitive(\"#{one.gsub('"', '\"')}\")" }
      manifest = <<~PUPPET
        dsc_norm { 'a': dsc_key => 'a', dsc_token => #{values[0]}, dsc_pin => #{values[1]}, dsc_text => #{values[2]},
          dsc_login => { 'user' => 'u', 'password' => #{values[3]} }, dsc_labels => [#{values[4]}, #{values[5]}],
          dsc_table => { 'a' => #{values[6]}, 'b' => { 'c' => #{values[7]} } }, dsc_part => { 'name' => #{values[8]} } }
        dsc_norm { 'b': dsc_key => 'b', dsc_fails => 'Set', dsc_token => #{values[9]} }
      PUPPET
      2.times { run.apply(manifest, '--debug', '--trace', '--show_diff') }
      expect(run.traces('CANARY')).to eq([])
    end
  end

  it 'is in its desired state in little time: a hundred of them' do
    manifest = (1..100).map { |at| "dsc_norm { 'n#{at}': dsc_key => 'n#{at}', dsc_text => 'x' }" }.join("\n")
    run.apply(manifest)
    run.calls
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    expect(run.apply(manifest).lines).to eq([])
    warn "a hundred resources in state: #{(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round(2)} s"
    expect(run.calls.values.uniq).to eq([%w[Get]])
    expect(run.processes).to eq(1)
  end
end
