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
        @known = @attributes.each_value.map(&:property).compact
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

      # @param values [Hash{Symbol => Object}] attributes
      # @return [Hash{String => Object}] properties for the engine
      def to_engine(values)
        sent = values.select { |name, _| @attributes[name]&.sent? }
        sent = sent.select { |name, _| @attributes[name].key? || @attributes[name].presence? } if absent?(values)
        sent.each_with_object({}) { |(name, value), result| add(result, @attributes[name], value) }
      end

      # @param answer [Hash] what the engine says about one instance
      # @return [Hash{Symbol => Object}] attributes, without those that Puppet must not or need not see
      def to_puppet(answer)
        actual = (answer['actual'] || {}).merge(Attribute::EXISTENCE => answer['exists']).transform_keys(&:downcase)
        read = @attributes.select { |_, attribute| attribute.read? }
        read.transform_values { |attribute| attribute.to_puppet(actual[attribute.property.downcase]) }.compact
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
        actual.keys.reject { |property| property.start_with?('_', '$') || @known.any? { |one| one.casecmp?(property) } }
      end

      private

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
