# frozen_string_literal: true

require 'time'
require_relative 'errors'
require_relative 'secret'

module PuppetX
  module Stead
    # Turns the values of one attribute into JSON data and back, led by its Puppet data type.
    class Conversion
      Types = Puppet::Pops::Types
      Timestamp = Puppet::Pops::Time::Timestamp
      WRAPPERS = [Types::POptionalType, Types::PNotUndefType, Types::PSensitiveType].freeze

      # @param keys [Hash{String => String}] what keys of objects are to the engine, at any depth
      def initialize(type, keys = {})
        @type = type
        @keys = keys
      end

      # @param path [String] the attribute, for messages
      # @return JSON data with {Secret}s in it
      # @raise [Puppet::ResourceError] naming the path of what JSON cannot hold
      def to_engine(value, path)
        outward(value, @type, path)
      end

      # @param path [String] the attribute, for messages
      # @raise [Error] the value cannot be one of this type
      def to_puppet(data, path)
        inward(data, @type, path)
      end

      private

      def outward(value, type, path)
        type = narrowed(type, value)
        case value
        when Types::PSensitiveType::Sensitive then Secret.new(exposed(outward(value.unwrap, type, path)))
        when Hash then object(value, type, path)
        when Array then value.each_with_index.map { |item, index| outward(item, element(type, index), "#{path}[#{index}]") }
        else scalar(value, type, path)
        end
      end

      def object(value, type, path)
        value.to_h do |key, item|
          raise Puppet::ResourceError, "#{path}: the key #{key.inspect} is not a string" unless [String, Symbol].include?(key.class)

          [@keys.fetch(key.to_s, key.to_s), outward(item, member(type, key.to_s), "#{path}.#{key}")]
        end
      end

      def scalar(value, type, path)
        case value
        when nil, true, false, Integer then value
        when :undef then nil
        when Float then finite(value, path)
        when String, Symbol then spelled(text(value.to_s, path), type)
        when Timestamp then value.format('%FT%T.%NZ')
        when Types::PBinaryType::Binary then value.to_s
        else raise Puppet::ResourceError, "#{path}: a value of type #{Types::TypeCalculator.infer(value)} cannot be sent to the engine"
        end
      end

      def finite(value, path)
        return value if value.finite?

        raise Puppet::ResourceError, "#{path}: #{value} is not a finite number"
      end

      def text(value, path)
        utf8 = value.encoding == Encoding::UTF_8 ? value : value.encode(Encoding::UTF_8)
        return utf8 if utf8.valid_encoding?

        raise Puppet::ResourceError, "#{path}: is not valid UTF-8"
      rescue EncodingError
        raise Puppet::ResourceError, "#{path}: is not valid UTF-8"
      end

      # An enum that ignores case is sent as it is declared.
      def spelled(value, type)
        return value unless type.is_a?(Types::PEnumType)

        type.values.find { |one| one == value } || type.values.find { |one| one.casecmp?(value) } || value
      end

      # Inside of a secret everything is secret.
      def exposed(data)
        Secret.replace(data) { |inner| inner.expose.each_value.first }
      end

      def inward(data, type, path)
        type = read_as(type, data)
        case data
        when Hash then members(data, type, path)
        when Array then data.each_with_index.map { |item, index| inward(item, element(type, index), "#{path}[#{index}]") }
        when String then parsed(data, type, path)
        when Integer then type.is_a?(Types::PFloatType) ? data.to_f : data
        else data
        end
      end

      def members(data, type, path)
        return declared(data, type, path) if type.is_a?(Types::PStructType)

        data.to_h { |key, item| [key, inward(item, member(type, key), "#{path}.#{key}")] }
      end

      # Members that a Struct does not declare would only make Puppet complain.
      def declared(data, type, path)
        found = data.transform_keys(&:downcase)
        type.elements.each_with_object({}) do |one, result|
          name = [@keys[one.name], one.name].compact.map(&:downcase).find { |key| found.key?(key) }
          result[one.name] = inward(found[name], one.value_type, "#{path}.#{one.name}") if name
        end
      end

      def parsed(data, type, path)
        case type
        when Types::PEnumType then spelled(data, type)
        when Types::PTimestampType then instant(data, path)
        when Types::PBinaryType then Types::PBinaryType::Binary.from_base64(data)
        when Types::PIntegerType then Integer(data, 10, exception: false) || data
        else data
        end
      end

      def instant(data, path)
        Timestamp.from_time(Time.iso8601(data))
      rescue ArgumentError
        begin
          Timestamp.parse(data)
        rescue ArgumentError
          raise Error, "#{path}: the engine returned '#{data}', which is not a date and time"
        end
      end

      # Of the types of a Variant, the first that the data is one of.
      def read_as(type, data)
        type = unwrapped(type)
        return type unless type.is_a?(Types::PVariantType)

        unwrapped(type.types.find { |one| fits?(data, one) } || Types::PAnyType::DEFAULT)
      end

      def fits?(data, type)
        type.instance?(inward(data, type, ''))
      rescue Error
        false
      end

      def narrowed(type, value)
        type = unwrapped(type)
        return type unless type.is_a?(Types::PVariantType)

        narrowed(type.types.find { |one| one.instance?(value) } || Types::PAnyType::DEFAULT, value)
      end

      def unwrapped(type)
        type = type.type || Types::PAnyType::DEFAULT while WRAPPERS.include?(type.class)
        type
      end

      def element(type, index)
        case type
        when Types::PArrayType then type.element_type
        when Types::PTupleType then type.types[index] || type.types.last
        end || Types::PAnyType::DEFAULT
      end

      def member(type, key)
        case type
        when Types::PStructType then type.elements.find { |one| one.name == key }&.value_type
        when Types::PHashType then type.value_type
        end || Types::PAnyType::DEFAULT
      end
    end
  end
end
