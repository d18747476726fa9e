# frozen_string_literal: true

require_relative 'secret'
require_relative 'test_request'

module PuppetX
  module Stead
    # Goes in front of the methods of a generated type. The Resource API gives a provider the keys of a resource to read; with
    # the resource itself, one request answers what is there and what differs.
    module VisibleResource
      # When a catalog becomes resources: what JSON cannot hold is refused before anything is changed.
      def initialize(attributes)
        super
        test_request
      end

      # @return [TestRequest] what the engine is asked about this resource, the same as long as its attributes are
      # @raise [Puppet::ResourceError] the engine could not be sent the attributes
      def test_request
        desired = desired_values
        @test_request = my_provider.test_request(context, desired) unless @test_request&.desired == desired
        @test_request
      end

      def refresh_current_state
        cover_secrets
        my_provider.reading(self) { super }
      end

      # Puppet would warn of parameters in every run: it can cover properties alone. Nothing shows a parameter.
      #
      # @param names [Array<Symbol>] the attributes that are sensitive in the manifest
      def set_sensitive_parameters(names) # rubocop:disable Naming/AccessorMethodName -- the name is Puppet's
        super(names.select { |name| parameter(name).is_a?(Puppet::Property) })
      end

      # @return [Hash{Symbol => Object}] what the manifest says. The Resource API keeps its own answer to that for good, and
      #   resources that are purged change after they were made.
      def desired_values
        type_definition.attributes.each_key.with_object({}) do |name, result|
          value = parameter(name)&.rs_value
          result[name] = value unless value.nil?
        end
      end

      private

      # Resource API releases before 1.9.2 forget which properties are secret; events and state files would show them.
      def cover_secrets
        properties.each { |property| property.sensitive = true if Secret.within?(property.rs_value) }
      end
    end
  end
end
