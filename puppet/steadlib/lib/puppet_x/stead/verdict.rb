# frozen_string_literal: true

module PuppetX
  module Stead
    # What the engine says about a desired state: the answer to `test`.
    class Verdict
      attr_reader :differing

      # @param result [Hash] the answer of the engine
      # @param existence [Boolean, nil] the desired `_exist`
      # @param mode [String, nil] `resource`: its own test alone decides; otherwise the properties that differ
      def initialize(result, existence, mode)
        @differing = (result['differing'] || []).map { |one| one['property'].delete_prefix('/').split('/').first }
        existence = result['exists'] if existence.nil?
        same = @differing.empty? && result['exists'] == existence
        @in_sync = mode == 'resource' ? result['inDesiredState'] : same
      end

      def in_sync?
        @in_sync
      end

      def differs?(property)
        !property.nil? && @differing.any? { |one| one.casecmp?(property) }
      end
    end
  end
end
