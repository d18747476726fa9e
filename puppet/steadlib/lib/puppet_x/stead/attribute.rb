# frozen_string_literal: true

require_relative 'conversion'

module PuppetX
  module Stead
    # One attribute of a generated type, and the property of the engine that it stands for.
    class Attribute
      EXISTENCE = '_exist'
      PRESENT = 'present'
      ABSENT = 'absent'

      attr_reader :name, :property

      # @param type_name [Symbol] the Puppet type, for messages
      # @param definition [Hash] the attribute in the type file
      def initialize(type_name, name, definition)
        @name = name
        @path = "#{type_name}.#{name}"
        @property = definition[:property]
        @behaviour = definition[:behaviour]
        @values = definition[:values]
        @presence = @values.to_h.keys.map(&:downcase).sort == [ABSENT, PRESENT]
        @secret = definition[:secret]
        @type = Puppet::ResourceApi::DataTypeHandling.parse_puppet_type(name, definition[:type])
        @conversion = Conversion.new(@type, definition.fetch(:keys, {}))
      end

      def sent?
        !@property.nil?
      end

      def key?
        @behaviour == :namevar
      end

      # Whether Puppet compares it: it is not a parameter, a namevar or read-only.
      def compared?
        @behaviour.nil?
      end

      # Whether what the system has may reach Puppet.
      def read?
        sent? && @behaviour != :parameter && !@secret
      end

      # Whether it says that the instance is there: `ensure` and its other names.
      def presence?
        @presence
      end

      def existence?
        @property == EXISTENCE
      end

      # @raise [Puppet::ResourceError] JSON cannot hold the value
      def to_engine(value)
        return @conversion.to_engine(value, @path) if @values.nil?

        spelled = @values.keys.find { |one| one.casecmp?(value.to_s) }
        raise Puppet::ResourceError, "#{@path}: '#{value}' is not one of #{@values.keys.join(', ')}" if spelled.nil?

        @values[spelled]
      end

      # @return nil if there is nothing to show: no value, or a secret
      def to_puppet(data)
        return if Secret.within?(data)
        return empty if data.nil?

        @values.nil? ? @conversion.to_puppet(data, @path) : spelling(data)
      end

      # Whether this value of the attribute demands that there is no instance.
      def absent?(value)
        presence? && value.to_s.casecmp?(ABSENT)
      end

      private

      def spelling(data)
        @values.find { |_, one| one == data || one.to_s.casecmp?(data.to_s) }&.first
      end

      # Puppet knows no null in a type that is not optional.
      def empty
        '' if !@type.instance?(nil) && @type.instance?('')
      end
    end
  end
end
