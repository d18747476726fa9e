# frozen_string_literal: true

require 'yaml'
require_relative 'fixtures/fake_engine'

# An engine of one instance: what a case says about DSC.
class CaseEngine
  attr_reader :requests

  def initialize(dsc)
    @dsc = dsc
    @requests = []
  end

  def request(method, params, _deadline)
    @requests << method
    raise PuppetX::Stead::RequestError, 'message' => 'the system cannot be read', 'data' => { 'code' => 'E0801' } if @dsc['get'].nil?

    differing = params['properties'].reject { |name, value| same?(value, Comparison.fetch(@dsc['get'], name)) }.keys
    verdict = @dsc.dig('test', 'indesiredstate')
    { 'exists' => true, 'actual' => @dsc['get'], 'inDesiredState' => verdict.nil? ? differing.empty? : verdict,
      'differing' => differing.map { |name| { 'property' => "/#{name}" } } }
  end

  def once(_key); end

  def read_ahead(_catalog); end

  private

  def same?(desired, actual)
    desired = desired.expose.each_value.first if desired.is_a?(PuppetX::Stead::Secret)
    Comparison.same?(desired, actual)
  end
end

# A case of the table, run through the provider.
class GoldenCase
  PARAMETERS = { validation_mode: { type: 'Enum[property, resource]', default: 'property', behaviour: :parameter } }.freeze
  MARKS = {
    '$sensitive' => Puppet::Pops::Types::PSensitiveType::Sensitive.method(:new),
    '$timestamp' => Puppet::Pops::Time::Timestamp.method(:parse)
  }.freeze
  Resource = Struct.new(:title, :test_request, :catalog, :noop?)

  attr_reader :engine

  def initialize(data)
    @data = data
    @engine = CaseEngine.new(data['dsc'])
    @context = Puppet::ResourceApi::PuppetContext.new(Puppet::ResourceApi::TypeDefinition.new(definition))
    @provider = Puppet::Provider::SteadBase.new
  end

  def run
    desired = decoded(@data['manifest'])
    values = desired.compact.slice(*definition[:attributes].keys)
    resource = Resource.new('Foo', @provider.test_request(@context, values), nil, false)
    state = @provider.reading(resource) { @provider.get(@context, [desired[:dsc_name]]) }.first
    insync = verdicts(state, values)
    { 'canonical' => canonical(values, state, insync), 'insync' => insync }
  end

  private

  def canonical(desired, state, insync)
    desired.reject { |name, _| name == :validation_mode }
           .to_h { |name, value| [name, insync[name] == false ? value : state.fetch(name, value)] }
  end

  def verdicts(state, desired)
    compared = definition[:attributes].select { |_, one| one[:behaviour].nil? }.keys & decoded(@data['manifest']).keys
    compared.to_h { |name| [name, desired.key?(name) ? [@provider.insync?(@context, 'Foo', name, state, desired)].flatten.first : nil] }
  end

  def definition
    @definition ||= {
      name: 'dsc_note', desc: 'A note.', features: %w[simple_get_filter custom_insync], stead: { type: 'Case/Note' },
      attributes: @data['attributes'].to_h { |name, one| [name.to_sym, attribute(name, one)] }.merge(PARAMETERS)
    }
  end

  def attribute(name, one)
    property = name.delete_prefix('dsc_')
    values = { 'Present' => 'Present', 'Absent' => 'Absent' } if property == 'ensure'
    { type: one['type'], desc: name, behaviour: one['behaviour']&.to_sym, property: property, values: values }.compact
  end

  def decoded(data)
    case data
    when Hash then marked(data) { data.to_h { |key, value| [data.equal?(@data['manifest']) ? key.to_sym : key, decoded(value)] } }
    when Array then data.map { |value| decoded(value) }
    else data
    end
  end

  def marked(data)
    mark = MARKS.keys.find { |one| data.key?(one) }
    mark ? MARKS[mark].call(data[mark]) : yield
  end
end

RSpec.describe Puppet::Provider::SteadBase do
  fixtures = File.expand_path('fixtures', __dir__)
  deviations = YAML.safe_load(File.read(File.join(fixtures, 'deviations.yaml')))

  def encoded(data)
    case data
    when Puppet::Pops::Types::PSensitiveType::Sensitive then { '$sensitive' => '[redacted]' }
    when Puppet::Pops::Time::Timestamp then { '$timestamp' => data.to_s }
    when Hash then data.to_h { |key, value| [key.to_s, encoded(value)] }
    when Array then data.map { |value| encoded(value) }
    else data
    end
  end

  JSON.parse(File.read(File.join(fixtures, 'cases.json'))).each do |data|
    context data['id'] do
      subject(:golden) { GoldenCase.new(data) }

      let(:deviation) { deviations.fetch(data['id'], {}) }
      let(:expected) { data['pwshlib'].slice('canonical', 'insync') }

      before { allow(PuppetX::Stead::Session).to receive(:current).and_return(golden.engine) }

      it data['about'] do
        if deviation['error']
          expect { golden.run }.to raise_error(PuppetX::Stead::Error, deviation['error'])
        else
          stead = expected.to_h { |part, values| [part, values.merge(deviation.fetch(part, {}))] }
          stead['canonical'].compact!
          found = encoded(golden.run)
          found['canonical'].compact!
          expect(found).to eq(stead)
        end
        expect(golden.engine.requests.length).to eq(1)
      end
    end
  end

  it 'names no deviation that is none' do
    cases = JSON.parse(File.read(File.join(fixtures, 'cases.json'))).to_h { |data| [data['id'], data['pwshlib']] }
    deviations.each do |id, deviation|
      %w[canonical insync].each { |part| expect(cases[id][part]).not_to include(deviation[part]) if deviation[part] }
      expect(deviation['reason']).to match(/\A[A-Z].*\.\z/)
    end
  end
end
