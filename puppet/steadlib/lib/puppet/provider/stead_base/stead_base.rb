# frozen_string_literal: true

require 'puppet/resource_api'
require_relative '../../../puppet_x/stead/autorelations'
require_relative '../../../puppet_x/stead/data_types'
require_relative '../../../puppet_x/stead/errors'
require_relative '../../../puppet_x/stead/resource_type'
require_relative '../../../puppet_x/stead/restart'
require_relative '../../../puppet_x/stead/session'
require_relative '../../../puppet_x/stead/state'
require_relative '../../../puppet_x/stead/verdict'
require_relative '../../../puppet_x/stead/visible_property'
require_relative '../../../puppet_x/stead/visible_resource'

# The provider of every generated type: it asks the engine, which alone knows resources. In sync it takes one request, a
# change takes a second, and a third verifies it.
class Puppet::Provider::SteadBase
  include PuppetX::Stead

  # The attributes with the seconds that a request may take.
  DEADLINES = %i[stead_timeout dsc_timeout].freeze

  # Called by a generated provider when Puppet loads it, which is when its type has just been registered.
  def self.manages(type_name)
    type = Puppet::Type.type(type_name)
    type.prepend(PuppetX::Stead::VisibleResource, PuppetX::Stead::Autorelations)
    type.properties.each { |property| property.prepend(PuppetX::Stead::VisibleProperty) }
    definition = type.type_definition.definition
    PuppetX::Stead::DataTypes.keep(definition)
    engine = definition.fetch(:stead)
    PuppetX::Stead::Session.schemas[engine.values_at(:type, :version).compact.join('@')] = engine[:digest]
  end

  # @param desired [Hash{Symbol => Object}] the attributes of a resource
  # @return [TestRequest]
  # @raise [Puppet::ResourceError] the engine could not be sent them
  def test_request(context, desired)
    seconds = deadline(desired)
    TestRequest.new(desired, params(context, desired).merge('deadline' => seconds), seconds, type(context).compared(desired))
  end

  # Reads a resource with what the manifest says about it.
  #
  # @param resource [VisibleResource]
  # @return [State]
  def read(context, resource)
    request = resource.test_request
    desired = request.desired
    claim(context, resource, desired)
    keys = desired.slice(*type(context).namevars)
    state = request.compares? ? compare(context, resource, request) : look(context, keys, desired)
    state.resource = resource
    state.merge!(keys)
  end

  # @param titles [Array] what identifies the instances to read; none: all
  # @return [Array<State>]
  def get(context, titles = nil)
    return export(context) if titles.nil? || titles.empty?

    titles.map do |title|
      keys = title.is_a?(Hash) ? title.to_h : { type(context).namevars.first => title }
      look(context, keys, {}).merge!(keys)
    end
  end

  # @return [Boolean, nil, Array] nil leaves the comparison to Puppet
  def insync?(context, _title, name, current, should)
    state = State.of(current)
    return unless state.first_question?(name)

    state.verdict ||= test(context, should)
    state.out_of_sync ||= state.verdict.out_of_sync(type(context), should)
    return true unless state.out_of_sync.include?(name)

    [false, message(type(context)[name], state, should)]
  end

  def set(context, changes)
    changes.each { |title, change| change_one(context, title, State.of(change[:is]), change[:should]) }
  end

  private

  def type(context)
    @type ||= ResourceType.new(context.type.definition)
  end

  def ask(context, method, values, **options)
    Session.current.request(method, params(context, values).merge(options), deadline(values))
  end

  def params(context, values)
    type(context).identity.merge('properties' => type(context).to_engine(values))
  end

  def deadline(values)
    values.values_at(*DEADLINES).compact.first || Session::DEADLINE
  end

  def test(context, desired)
    Verdict.new(ask(context, 'test', desired))
  end

  def look(context, keys, desired)
    state(context, ask(context, 'get', keys.merge(desired.slice(*DEADLINES))), desired)
  end

  # An absent instance hides all its properties from Puppet if the state has `ensure` and the manifest does not.
  def compare(context, resource, request)
    answer = tested(resource, request)
    verdict = Verdict.new(answer)
    out_of_sync = verdict.out_of_sync(type(context), request.desired, request.compared)
    in_sync(resource) if out_of_sync.empty? || resource.noop?
    state = out_of_sync.empty? && !resource.shows_values? ? unseen(context, answer, request) : state(context, answer, request.desired)
    state.delete(:ensure) unless request.desired.key?(:ensure)
    state.compared(verdict, out_of_sync)
  end

  # Of a resource in sync Puppet looks at `ensure` alone.
  def unseen(context, answer, request)
    report_unknown(context, answer['actual'] || {})
    State.of(request.desired.slice(:ensure))
  end

  def in_sync(resource)
    ahead(resource)&.in_sync(resource)
  end

  def tested(resource, request)
    ahead(resource)&.answer(resource, request) || Session.current.request('test', request.params, request.deadline)
  end

  # @return [ReadAhead, nil] what is asked ahead in this run
  def ahead(resource)
    Session.current.read_ahead(resource&.catalog)
  end

  # Instances that cannot be listed, or not without a filter, are none; `puppet resource` goes on with the one that is named.
  def export(context)
    answer = listed(context)
    answer.fetch('instances', []).map do |instance|
      found = { 'exists' => true, 'actual' => instance['properties'] }
      state(context, found, {}).tap { |state| identify(context, state, instance) }
    end
  end

  def listed(context)
    Session.current.request('export', type(context).identity)
  rescue RequestError => e
    raise unless e.code == RequestError::FAILED

    Session.current.once([:export, context.type.name]) { context.warning("instances cannot be listed: #{e.message}") }
    {}
  end

  # A namevar that is not a property is the title that the instance gets in Puppet.
  def identify(context, state, instance)
    known = type(context)
    keys = known.namevars.select { |name| known[name].sent? }.map { |name| state[name] }
    (known.namevars - state.keys).each { |name| state[name] = instance['name'] || keys.join(' ') }
    state[:title] = state[known.namevars.first]
  end

  # @param desired [Hash] what is secret in it is secret in what the system has, too
  def state(context, answer, desired)
    known = type(context)
    report_unknown(context, answer['actual'] || {})
    values = known.to_puppet(answer).reject { |name, _| Secret.within?(desired[name]) }
    State.of(values).tap { |state| state.exists = answer['exists'] && !known.absent?(values) }
  end

  def report_unknown(context, actual)
    unknown = type(context).unknown(actual)
    return if unknown.empty?

    Session.current.once([:unknown, context.type.name]) do
      context.warning("the engine returned properties that this type does not have: #{unknown.join(', ')}; " \
                      'run `stead puppetize` again')
    end
  end

  # Two resources that manage the same instance would undo each other in every run.
  def claim(context, resource, desired)
    claimed = type(context).claimed
    return if claimed.empty? || resource.catalog.nil?

    @claims = {} unless @catalog.equal?(resource.catalog)
    @catalog = resource.catalog
    other = (@claims[type(context).to_engine(desired.slice(*claimed))] ||= resource.title)
    raise Error, "#{context.type.name}[#{other}] manages the same instance" unless other == resource.title
  end

  # A state that Puppet made has only attributes.
  def present?(known, state)
    state.exists.nil? ? !known.absent?(state) : state.exists
  end

  # @return [String, nil] nil leaves the text to Puppet
  def message(attribute, state, should)
    desired = should[attribute&.name]
    if Secret.within?(desired)
      "changed #{Secret::COVER} to #{Secret::COVER}"
    elsif attribute.nil? || !state.verdict.differs?(attribute, desired)
      'the engine reports that the resource is not in its desired state, but names no property'
    else
      change(attribute, state[attribute.name], desired)
    end
  end

  # The words for `ensure` are Puppet's; its own way to them takes an eighth of the time of a change.
  def change(attribute, current, desired)
    if attribute.name == :ensure
      attribute.absent?(desired) ? "undefined 'ensure' from '#{current}'" : "defined 'ensure' as '#{desired}'"
    elsif current.to_s == desired.to_s
      "changed #{current.inspect} (#{current.class}) to #{desired.inspect} (#{desired.class})"
    end
  end

  def change_one(context, title, state, should)
    failure = nil
    label = should[:name] || (title.is_a?(Hash) ? title.values.join(' ') : title)
    context.public_send(action(context, state, should), label) do
      make(context, state, should)
    rescue StandardError => e
      failure = e
      raise
    end
    return if failure.nil?

    # The Resource API would report only that something failed.
    context.reset_failed
    raise failure
  end

  def action(context, state, should)
    return :deleting if type(context).absent?(should)

    present?(type(context), state) ? :updating : :creating
  end

  def make(context, state, should)
    ahead = ahead(state.resource)
    ahead&.changing
    result = ask(context, 'set', should, 'verify' => should[:stead_verify] != false)
    ahead&.changed(state.resource)
    Array(result['messages']).each { |text| context.notice(text) }
    Restart.report(context, state.resource, result['restartRequired']) if result['restartRequired']&.any?
    verify(context, result['verification'], should) if result['verification']
  end

  # @raise [Error] naming what the change did not reach, which would otherwise be changed in every run
  def verify(context, answer, should)
    raise Error, "changed, but cannot be verified: #{RequestError.new(answer['error']).message}" if answer['error']

    rest = Verdict.new(answer).out_of_sync(type(context), should)
    raise Error, "not in the desired state after the change: #{rest.join(', ')}" unless rest.empty?
  end
end
