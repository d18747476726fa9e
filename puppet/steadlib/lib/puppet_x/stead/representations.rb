# frozen_string_literal: true

require 'json'
require_relative 'secret'
require_relative 'session'

module PuppetX
  module Stead
    # What `--debug` shows of a resource: every form that it has on the way from the manifest to the system and back, in the order
    # in which they come to be. Secrets are covered in all of them.
    class Representations
      def initialize(type, title)
        @type = type
        @label = "#{type.name}[#{title}]"
      end

      # @yieldparam [Representations] what shows them; nothing is done unless Puppet shows them
      def self.of(type, title)
        yield new(type, title) if Session.debugging?
      end

      # Shows what a request comes to, also where that is an error.
      def self.of_answer(type, title)
        yield.tap { |answer| of(type, title) { |shown| shown.answered(answer) } }
      rescue RequestError => e
        of(type, title) { |shown| shown.script(e.data['script']) }
        raise
      end

      # What comes before the engine has answered.
      def asked(desired)
        show('uncanonicalized request', desired_values(desired))
        show('metadata', @type.metadata)
      end

      # @param answer [Hash] the result of a request
      def answered(answer)
        script(answer['script'])
        show('raw JSON answer', answer.reject { |name, _| name == 'script' })
      end

      # The script comes with an error as well.
      def script(text)
        say('full script', "\n#{text.chomp}") if text
      end

      # @param values [Hash{Symbol => Object}] the answer as attributes
      # @param verdict [Verdict]
      def compared(values, desired, verdict)
        munged = desired_values(values)
        target = desired_values(desired)
        show('munged answer', munged)
        show('canonicalized resource', spelled(target, munged, desired, verdict))
        show('current state', munged)
        show('target state', target)
      end

      private

      # What does not differ is written as the system has it.
      def spelled(target, munged, desired, verdict)
        target.to_h do |name, value|
          attribute = @type[name]
          equal = attribute&.sent? && munged.key?(name) && !verdict.differs?(attribute, desired[name])
          [name, equal ? munged[name] : value]
        end
      end

      def desired_values(values)
        values.to_h { |name, value| [name, @type[name]&.secret? ? Secret::COVER : Secret.shown(value)] }
      end

      def show(kind, data)
        say(kind, JSON.generate(Secret.shown(data)))
      end

      def say(kind, text)
        Puppet.debug("stead #{@label}: #{kind}: #{text}")
      end
    end
  end
end
