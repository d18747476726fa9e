# frozen_string_literal: true

module PuppetX
  module Stead
    # What the engine says about a desired state: the answer to `test`.
    class Verdict
      # The attribute that the Resource API adds to a type without properties.
      TRIGGER = :rsapi_custom_insync_trigger

      # @param result [Hash] the answer of the engine
      def initialize(result)
        @in_desired_state = result['inDesiredState']
        @exists = result['exists']
        @differing = (result['differing'] || []).map { |one| outermost(one['property']).downcase }
      end

      # With the validation mode `resource` the test of the resource alone decides. Otherwise properties decide, and only those
      # that Puppet manages, or that the instance is not there. If no attribute differs, one must carry the difference.
      #
      # @param desired [Hash{Symbol => Object}] attributes
      # @param compared [Array<Symbol>] those of them that Puppet compares
      # @return [Array<Symbol>] the attributes that are out of sync
      def out_of_sync(type, desired, compared = type.compared(desired))
        return [] if desired[:validation_mode] == 'resource' && @in_desired_state

        found = compared.select { |name| differs?(type[name], desired[name]) }
        return found unless found.empty?

        decides = desired[:validation_mode] == 'resource' ? !@in_desired_state : missing?(type, desired, compared)
        decides ? [carrier(type, compared)] : found
      end

      # Whether the engine named this attribute or its existence is not the desired one.
      def differs?(attribute, desired)
        return @exists != attribute.to_engine(desired) if attribute.existence?

        !@differing.empty? && @differing.include?(attribute.lowercase)
      end

      private

      # Whether the instance is not there though nothing says that it is not to be.
      def missing?(type, desired, compared)
        @exists == false && !compared.empty? && !type.absent?(desired)
      end

      # @param pointer [String] a JSON pointer
      def outermost(pointer)
        pointer.split('/')[1].to_s.gsub('~1', '/').gsub('~0', '~')
      end

      def carrier(type, compared)
        compared.find { |name| !type[name].presence? } || compared.first || TRIGGER
      end
    end
  end
end
