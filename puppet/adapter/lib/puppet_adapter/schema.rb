# frozen_string_literal: true

module PuppetAdapter
  # What a type says of itself.
  class Schema
    VALUE = %w[string number boolean array object].freeze

    def initialize(type)
      @type = type
    end

    # @return [Symbol] the attribute that identifies an instance
    def key
      @type.key_attributes.first
    end

    # Whether instances can be absent.
    def ensurable?
      @type.validproperty?(:ensure) && @type.attrclass(:ensure).value_collection.values.include?(:absent)
    end

    # Whether a value must not be shown: types of the Resource API say so by their data type.
    def secret?(name)
      return true if @type.attrclass(name).method_defined?(:is_sensitive)

      @type.respond_to?(:type_definition) && @type.type_definition.attributes.dig(name, :type).to_s.include?('Sensitive[')
    end

    # @return [Hash] a line of `list`
    def listing
      {
        'type' => "#{OWNER}#{@type.name}", 'kind' => 'resource', 'version' => version,
        'capabilities' => %w[get test set export].select { |one| one != 'export' || @type.respond_to?(:instances) },
        'description' => first_line(@type.doc), 'requireAdapter' => "#{OWNER}Type", 'schema' => schema
      }
    end

    private

    # Types have no versions; those of Puppet come with it.
    def version
      Puppet.version[/\A\d+\.\d+\.\d+/]
    end

    def schema
      properties = attributes.to_h { |one| [one.name.to_s, property(one)] }
      properties['_exist'] = { 'type' => 'boolean', 'description' => 'Whether there is one.' } if ensurable?
      properties['_inDesiredState'] = { 'type' => 'boolean', 'readOnly' => true }
      { 'type' => 'object', 'additionalProperties' => false, 'required' => [key.to_s], 'properties' => properties }
    end

    def attributes
      (@type.properties + @type.parameters.map { |name| @type.paramclass(name) }).uniq(&:name).sort_by(&:name)
    end

    def property(attribute)
      schema = { 'type' => VALUE, 'description' => first_line(attribute.doc) }
      return schema.merge('type' => 'string', 'writeOnly' => true, 'format' => 'password') if secret?(attribute.name)

      @type.validproperty?(attribute.name) || attribute.name == key ? schema : schema.merge('writeOnly' => true)
    end

    def first_line(doc)
      doc.to_s.strip.split(/\n\s*\n/).first.to_s.gsub(/\s+/, ' ')
    end
  end
end
