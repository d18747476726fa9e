# frozen_string_literal: true

module PuppetAdapter
  # One instance of a type: what is desired of it, and what Puppet reads and does.
  class Instance
    EXISTENCE = '_exist'
    # @return [Array<Hash>] what there is and fits the filter
    def self.all(type, filter)
      found = type.instances.map { |one| new(type, type.key_attributes.first.to_s => one.name).state(one) }
      found.select { |state| filter.all? { |name, value| state[name] == value } }
    end

    # @return [Hash] whether the properties are valid, and why not
    def self.verdict(type, properties)
      new(type, properties).validate
      { 'valid' => true }
    rescue Error, Puppet::Error, ArgumentError => e
      { 'valid' => false, 'reason' => e.message }
    end

    # @param properties [Hash{String => Object}] those of the resource
    def initialize(type, properties)
      @type = type
      @schema = Schema.new(type)
      @attributes = properties.reject { |name, value| name.start_with?('_') || value.nil? }.transform_keys(&:to_sym)
      demand(properties[EXISTENCE]) if @schema.ensurable?
      check
    end

    # @param found [Puppet::Type] the instance if it was read before
    # @return [Hash{String => Object}] what there is
    def state(found = readable)
      values = found.to_resource.to_hash.slice(*shown)
      exists = !%i[absent purged].include?(values[:ensure])
      values = values.select { |_, value| exists && ![nil, :absent, []].include?(value) }
      result = values.to_h { |name, value| [name.to_s, plain(value)] }
      result[key.to_s] = title
      @schema.ensurable? ? result.merge(EXISTENCE => exists) : result
    end

    # Puppet checks values when it makes an instance, and looks at nothing of the machine then.
    def validate
      desired.to_ral
    end

    # @return [Array] the state with the verdict, and the properties that differ
    def test
      differing = changes(noop: true)
      [state.merge('_inDesiredState' => differing.empty?), differing]
    end

    # @return [Array] the state after, and the properties that were changed
    def set
      changed = changes(noop: false)
      [state, changed]
    rescue StandardError, ScriptError => e
      raise if changed.nil?

      raise Error, "#{desired.ref} was set, but its state cannot be read: #{e.message}"
    end

    private

    def key
      @schema.key
    end

    def title
      @attributes[key]
    end

    # @param existence [Boolean, nil]
    def demand(existence)
      @attributes[:ensure] = 'absent' if existence == false
      @attributes[:ensure] ||= 'present' if existence
    end

    def check
      raise Error, "'#{key}' is required: it identifies the instance" unless title

      unknown = @attributes.keys.reject { |name| @type.validattr?(name) }
      raise Error, "#{@type.name} has no attribute #{unknown.map { |name| "'#{name}'" }.join(', ')}" unless unknown.empty?
    end

    def shown
      @type.properties.map(&:name).reject { |name| @schema.secret?(name) }
    end

    # Parameters say how to read, such as the provider; the audit has every property read.
    def readable
      parameters = @attributes.reject { |name, _| @type.validproperty?(name) || @schema.secret?(name) }
      @type.new(title: title, audit: :all, **parameters).tap { |found| prefetch(found) }
    end

    # Providers that read a whole file do that for all instances at once.
    def prefetch(found)
      provider = found.provider&.class
      provider.prefetch(found.name => found) if provider.respond_to?(:prefetch)
    end

    # Applies a catalog with this instance alone.
    #
    # @return [Array<String>] the properties that changed or would
    # @raise [Error]
    def changes(noop:)
      status = apply(noop).resource_status(desired.ref)
      # Puppet has said why.
      raise Error, "#{desired.ref} failed" if status.failed? || status.events.any? { |event| event.status == 'failure' }

      status.events.filter_map(&:property).uniq
    end

    def apply(noop)
      Puppet[:noop] = noop
      catalog = Puppet::Resource::Catalog.new('stead', Puppet.lookup(:current_environment))
      catalog.add_resource(desired)
      catalog.to_ral.apply
    end

    # Puppet covers what is named as sensitive in events and messages.
    def desired
      @desired ||= Puppet::Resource.new(@type, title, parameters: @attributes.reject { |name, _| name == key }).tap do |resource|
        resource.sensitive_parameters = @attributes.keys.select { |name| @schema.secret?(name) }
      end
    end

    def plain(value)
      case value
      when Array then value.map { |item| plain(item) }
      when Hash then value.to_h { |name, item| [name.to_s, plain(item)] }
      when Numeric, true, false, nil then value
      when Time then value.utc.strftime('%FT%TZ')
      else value.to_s
      end
    end
  end
end
