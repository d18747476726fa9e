# frozen_string_literal: true

require 'base64'
require 'erb'
require 'tmpdir'
require_relative 'puppet_run'

RSpec.configure(&:disable_monkey_patching!)

RSpec.describe 'secrets' do
  # Texts that programs have shown by mistake; CANARY stands for what identifies each.
  forms = [
    'CANARY', "it's CANARY", 'say "CANARY"', "CANARY\nCANARY second line", "\#{CANARY}", '$(CANARY)', 'CANARY.*[(\\',
    'CANARY#PuppetSensitive', "\u00fcCANARY\u{1f511}", '{"secureString":"CANARY"}', '%43ANARY CANARY', "CANARY#{'x' * 1_000_000}"
  ].each_with_index.map { |form, index| form.gsub('CANARY', "CaNaRy#{index}Q") }

  # @return [Array<String>] the marker of a secret as it is, in base64 at each position, and percent-encoded
  def traces(text)
    marker = text[/CaNaRy\d+Q/]
    shifted = (0..2).map { |count| Base64.strict_encode64("#{'x' * count}#{marker}")[4..-5] }
    [marker, *shifted, marker.each_byte.map { |byte| format('%%%02X', byte) }.join]
  end

  def literal(text)
    "Sensitive('#{text.gsub('\\') { '\\\\' }.gsub("'") { "\\'" }}')"
  end

  def manifest(forms, prefix)
    forms.each_with_index.map do |text, index|
      secret = literal(prefix + text)
      "stead_note { 'n#{index}': pin => #{secret}, token => #{secret}, text => #{secret},
         login => { 'user' => 'u', 'password' => #{secret} }, anything => { 'deep' => [#{secret}] } }"
    end.join("\n")
  end

  def written(run)
    files = Dir[File.join(run.directory, 'var/**/*')].select { |path| File.file?(path) }
    files.to_h { |path| [path, File.binread(path)] }
  end

  it 'reach the engine and nothing else' do
    Dir.mktmpdir('stead') do |directory|
      run = PuppetRun.new(directory)
      store = { preload: File.join(PuppetRun::HERE, 'store_always.rb') }
      refused = "stead_note { 'refused': pin => #{literal(forms.first)} }"
      runs = [
        run.apply(manifest(forms, ''), '--debug', env: { 'FAKE_ENGINE_FAULT' => 'garbage' }, **store),
        run.apply(manifest(forms, ''), '--debug', **store),
        run.apply(manifest(forms, 'new '), '--debug', '--noop', **store),
        run.apply(manifest(forms, 'new ') + refused, '--debug', '--trace', **store),
        run.apply(manifest(forms, 'new '), '--debug', **store),
        run.puppet('resource', 'stead_note', 'n0', '--to_yaml'),
        run.puppet('resource', 'stead_note', 'n0', '--debug')
      ]
      expect(runs.map(&:code)).to eq([4, 2, 0, 6, 0, 0, 0])
      expect(run.instances('Test/Note').first['pin']).to eq('secureString' => "new #{forms.first}")
      found = { 'console' => runs.map(&:text).join.b }.merge(written(run)).flat_map do |place, text|
        forms.flat_map { |form| traces(form) }.select { |trace| text.include?(trace.b) }.map { |trace| [place, trace] }
      end
      expect(found).to eq([])
      expect(written(run).keys).to include(/last_run_report.yaml/)
      expect(File.read(File.join(directory, 'var/state/transactionstore.yaml'))).to include('Stead_note[n0]')
    end
  end
end
