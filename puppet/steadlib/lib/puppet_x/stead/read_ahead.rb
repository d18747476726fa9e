# frozen_string_literal: true

require 'puppet/transaction/resource_harness'
require_relative 'visible_resource'

module PuppetX
  module Stead
    # Sends the tests of resources before Puppet comes to them, so that the engine works while Puppet does.
    #
    # An answer is used only if nothing was changed since its request was sent, neither by the engine nor by Puppet. After a
    # change one test is ahead, and with each resource that is in sync twice as many, up to a limit.
    class ReadAhead
      # The most tests that are sent and not yet used. What is ahead is lost with a change. Others are sent together, once half of
      # them are used: the engine wakes up for several then.
      WIDTH = 8

      # Goes in front of what applies a resource: resources of other types change the system, too.
      module ChangeWatch
        def evaluate(resource)
          return resource.applying { super } if resource.is_a?(VisibleResource)

          super.tap { |status| Session.current.read_ahead(resource.catalog)&.evaluated(status) }
        end

        Puppet::Transaction::ResourceHarness.prepend(self)
      end

      # Goes in front of what applies a catalog: Puppet does not come to all resources whose tests were sent.
      module EndWatch
        def evaluate(*)
          super
        ensure
          Session.current.applied(@catalog)
        end

        Puppet::Transaction.prepend(self)
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

      # @param request [TestRequest] what is asked about the resource now
      # @return the answer to it, or nil if it must be asked for
      # @raise [RequestError]
      def answer(resource, request)
        @asked[resource] = true
        sent, id = @sent.delete(resource)
        return if id.nil?
        return received(id, sent.deadline) if sent.equal?(request)

        @session.abandon(id)
        nil
      end

      # Sends the tests of the resources that come after this one, which will not be changed.
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

      # Cancels all that was sent.
      def forget
        @sent.each_value { |_, id| @session.abandon(id) }
        @sent.clear
        @next = 0
      end

      # Notes what Puppet did with a resource of another type. Once there was a change, each can be refreshed, which is a change
      # as well.
      def evaluated(status)
        changing if @changed || status.changed? || status.failed?
      end

      private

      # What failed only because it was asked beside others is asked again by itself.
      def received(id, deadline)
        @session.answer(id, deadline)
      rescue RequestError => e
        raise unless e.of_the_moment?
      end

      def send_after(resource)
        position = @positions[resource]
        return if position.nil?

        @next = [@next, position + 1].max
        drop_before(position)
        send_tests(@width - @sent.length) if @sent.length <= @width / 2
      end

      # Those that Puppet skipped.
      def drop_before(position)
        @sent.take_while { |resource, _| @positions[resource] < position }.each do |resource, (_, id)|
          @sent.delete(resource)
          @session.abandon(id)
        end
      end

      def send_tests(count)
        tests = {}.compare_by_identity
        while tests.length < count && (resource = @resources[@next])
          break if @changed && !resource.is_a?(VisibleResource)

          @next += 1
          request = test_of(resource)
          tests[resource] = request if request&.compares?
        end
        ids = @session.send_ahead('test', tests.values)
        ids.zip(tests) { |id, (other, request)| @sent[other] = [request, id] }
      end

      # @return [TestRequest, nil]
      def test_of(resource)
        resource.test_request if resource.is_a?(VisibleResource) && !@asked.key?(resource) && !resource.parameter(:schedule)
      end
    end
  end
end
