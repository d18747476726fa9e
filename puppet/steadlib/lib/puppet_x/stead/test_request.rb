# frozen_string_literal: true

module PuppetX
  module Stead
    # A request of whether a resource is in its desired state, made from its attributes.
    class TestRequest
      attr_reader :desired, :params, :deadline

      # @param desired [Hash{Symbol => Object}] the attributes
      # @param params [Hash] what the engine is sent
      # @param deadline [Integer] seconds
      # @param compares [Boolean] whether Puppet compares one of the attributes
      def initialize(desired, params, deadline, compares:)
        @desired = desired
        @params = params
        @deadline = deadline
        @compares = compares
      end

      def compares?
        @compares
      end
    end
  end
end
