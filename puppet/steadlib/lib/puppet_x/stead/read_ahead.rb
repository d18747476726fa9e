# frozen_string_literal: true

require 'puppet/transaction/resource_harness'
require_relative 'visible_resource'

module PuppetX
  module Stead
    # Sends the tests of resources before Puppet comes to them, so that the engine works while Puppet does.
    #
    # An answer is used only if nothing was changed since its request was sent, neither by the engine nor by Puppet. Until the
    # first change of a run, more and more tests are sent; after it only that of the resource that comes next in the catalog.
    class ReadAhead
      # The most tests that are under way at once. More of them keep no more processors at work.
      WIDTH = 8

      # Goes in front of what applies a resource: resources of other types change the system, too.
      module ChangeWatch
        def evaluate(resource)
          super.tap { |status| Session.current.read_ahead(resource.catalog)&.evaluated(resource, status) }
        end

        Puppet::Transaction::ResourceHarness.prepend(self)
      end

      # @return [Boolean] whether Puppet comes to all resources of the catalog
      def self.possible?(catalog)
        catalog&.host_config? && [Puppet[:tags], Puppet[:skip_tags]].all? { |tags| tags.to_s.empty? }
      end

      attr_reader :catalog

      def initialize(session, catalog)
        @session = session
        @catalog = catalog
        @resources = catalog.resources
        @positions = @resources.each_with_index.with_object({}.compare_by_identity) { |(one, index), all| all[one] = index }
        @asked = {}.compare_by_identity
        @sent = {}.compare_by_identity
        @width = 1
        @next = 0
      end

      # @return the answer to the test of this resource, or nil if it must be asked for
      def answer(resource)
        @asked[resource] = true
        sent, id = @sent.delete(resource)
        return if id.nil?
        return @session.answer(id, sent.deadline) if sent.equal?(resource.test_request)

        @session.abandon(id)
        nil
      end

      # Sends the tests of the resources that come after this one, to which no change will be made.
      def in_sync(resource)
        @width = [@width * 2, WIDTH].min
        send_after(resource)
      end

      # Before a change: what was read is out of date then.
      def changing
        @changed = true
        @width = 1
        forget
      end

      # Sends the test of the resource that comes after this one, which was changed.
      def changed(resource)
        send_after(resource)
      end

      # Notes what Puppet did with a resource. Once there was a change, each can be refreshed, which is a change as well.
      def evaluated(resource, status)
        return if resource.is_a?(VisibleResource)

        changing if @changed || status.changed? || status.failed?
      end

      private

      def forget
        @sent.each_value { |_, id| @session.abandon(id) }
        @sent.clear
        @next = 0
      end

      def send_after(resource)
        position = @positions[resource]
        return if position.nil?

        @next = [@next, position + 1].max
        drop_before(position) if @sent.length >= @width
        while @sent.length < @width && (other = @resources[@next])
          break if @changed && !other.is_a?(VisibleResource)

          @next += 1
          send_test(other)
        end
      end

      # Those that Puppet skipped.
      def drop_before(position)
        @sent.delete_if { |resource, (_, id)| @positions[resource] < position && (@session.abandon(id) || true) }
      end

      def send_test(resource)
        return if !resource.is_a?(VisibleResource) || @asked.key?(resource) || resource.parameter(:schedule)

        request = resource.test_request
        id = @session.send_ahead('test', request.params, request.deadline) if request.compares?
        @sent[resource] = [request, id] if id
      end
    end
  end
end
