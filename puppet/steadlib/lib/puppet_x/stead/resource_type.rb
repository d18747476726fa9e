# frozen_string_literal: true

require_relative 'attribute'

module PuppetX
  module Stead
    # A generated type as the base provider sees it. It is made from the type file alone.
    class ResourceType
      attr_reader :name, :attributes

      # @param definition [Hash] what the type file registers
      def initialize(definition)
        @name = definition[:name]
        @engine = definition.fetch(:stead)
        @attributes = definition[:attributes].to_h { |name, one| [name, Attribute.new(@name, name, one)] }
        @properties = @attributes.each_value.select(&:sent?).to_h { |one| [one.property.downcase, one.name] }
        @read = @attributes.each_value.select(&:read?)
        @known = {}
      end

      # @return [Hash] the parameters of a request that say which type is meant
      def identity
        { 'type' => @engine[:type], 'version' => @engine[:version] }.compact
      end

      def [](name)
        @attributes[name]
      end

      def namevars
        @namevars ||= @attributes.each_value.select(&:key?).map(&:name)
      end

      # What is to be absent has no properties, but how it is removed can have parameters.
      #
      # @param values [Hash{Symbol => Object}] attributes
      # @return [Hash{String => Object}] properties for the engine
      def to_engine(values)
        sent = values.select { |name, _| @attributes[name]&.sent? }
        sent = sent.reject { |name, _| @attributes[name].compared? && !@attributes[name].presence? } if absent?(values)
        sent.each_with_object({}) { |(name, value), result| add(result, @attributes[name], value) }
      end

      # @param answer [Hash] what the engine says about one instance
      # @return [Hash{Symbol => Object}] attributes, without those that Puppet must not or need not see
      def to_puppet(answer)
        actual = (answer['actual'] || {}).transform_keys(&:downcase)
        actual[Attribute::EXISTENCE] = answer['exists']
        @read.each_with_object({}) do |attribute, result|
          value = attribute.to_puppet(actual[attribute.property.downcase])
          result[attribute.name] = value unless value.nil?
        end
      end

      # Whether these values demand that there is no instance.
      def absent?(values)
        values.any? { |name, value| @attributes[name]&.absent?(value) }
      end

      # @return [Array<Symbol>] the attributes of these values that Puppet compares
      def compared(values)
        values.keys.select { |name| @attributes[name]&.compared? }
      end

      # @return [Array<String>] properties that the engine returned and the type file does not know
      def unknown(actual)
        actual.each_key.reject { |property| @known.fetch(property) { @known[property] = known?(property) } }
      end

      # Puppet finds two resources with the same namevars itself; not so if one of them is only a title.
      #
      # @return [Array<Symbol>] the attributes that identify an instance, if Puppet does not compare them
      def claimed
        @claimed ||= namevars.all? { |name| @attributes[name].sent? } ? [] : namevars.select { |name| @attributes[name].sent? }
      end

      private

      def known?(property)
        @properties.key?(property.downcase) || property.start_with?('_', '$')
      end

      def add(result, attribute, value)
        data = attribute.to_engine(value)
        if result.fetch(attribute.property, data) != data
          raise Puppet::ResourceError, "#{@name}.#{attribute.name}: another attribute demands the opposite"
        end

        result[attribute.property] = data
      end
    end
  end
end
