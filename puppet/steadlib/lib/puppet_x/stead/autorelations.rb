# frozen_string_literal: true

require 'puppet/graph'

module PuppetX
  module Stead
    # Goes in front of the methods of a generated type. Puppet makes a resource of each name that a type requires by itself, to
    # look it up in the catalog; most catalogs have no resource of the other type at all.
    module Autorelations
      # Goes in front of what finds these relations, once for a catalog.
      module Graph
        def populate_from(catalog)
          Autorelations.types = catalog.resources.to_h { |one| [one.class.name, true] }
          super
        ensure
          Autorelations.types = nil
        end

        Puppet::Graph::RelationshipGraph.prepend(self)
      end

      class << self
        # @return [Hash{Symbol => true}, nil] the types of the catalog whose relations are being found
        attr_accessor :types
      end

      # @param kind [Symbol] such as `:require`
      def autorelation(kind, catalog = nil)
        types = Autorelations.types
        return super if types.nil?

        found = false
        self.class.public_send("eachauto#{kind}") { |type, _| found ||= types.key?(type) }
        found ? super : []
      end
    end
  end
end
