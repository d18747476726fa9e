# frozen_string_literal: true

require_relative 'puppet_adapter/instance'
require_relative 'puppet_adapter/schema'

# Hands messages of Puppet to the caller.
Puppet::Util::Log.newdesttype(:stead) do
  match(:stead)

  def handle(message)
    level = { debug: 'debug', info: 'info', notice: 'info', warning: 'warn' }.fetch(message.level, 'error')
    warn JSON.generate(level => message.message.to_s)
  end
end

# Types of Puppet as resources: each operation is a list of JSON values, the lines of its answer.
module PuppetAdapter
  OWNER = 'Puppet/'
  # They have no state of their own, or act on what the rest of a catalog does.
  EXCLUDED = %i[component exec filebucket notify resources schedule stage tidy whit].freeze

  # What is reported to the user.
  class Error < StandardError; end

  class << self
    # @param type [String, nil] such as `Puppet/file`
    # @param input [String] JSON
    # @return [Enumerable] what is printed, a line each
    def answer(operation, type, input)
      start
      Puppet.override(current_environment: environment, loaders: Puppet::Pops::Loaders.new(environment)) do
        return list if operation == 'list'

        carry_out(operation, known(type), input.strip.empty? ? {} : JSON.parse(input))
      end
    end

    private

    def start
      Puppet.initialize_settings(['--facts_terminus', 'memory'])
      Puppet::Util::Log.newdestination(:stead)
      Puppet[:report] = false
    end

    def environment
      @environment ||= Puppet.lookup(:environments).get!(Puppet[:environment])
    end

    def list
      load_types
      types = Puppet::Type.to_enum(:eachtype).reject { |type| EXCLUDED.include?(type.name) }
      types.sort_by(&:name).map { |type| Schema.new(type).listing }
    end

    # A file that cannot be loaded hides no other type. Puppet has said why, and passes over it the next time.
    def load_types
      Puppet::Type.loadall
    rescue Puppet::Error
      retry
    end

    def known(name)
      type = Puppet::Type.type(name.to_s.delete_prefix(OWNER).downcase)
      return type unless type.nil? || EXCLUDED.include?(type.name)

      raise Error, "there is no type of Puppet for '#{name}'"
    end

    def carry_out(operation, type, properties)
      case operation
      when 'validate' then [Instance.verdict(type, properties)]
      when 'get' then [Instance.new(type, properties).state]
      when 'test' then Instance.new(type, properties).test
      when 'set' then Instance.new(type, properties).set
      when 'export' then Instance.all(type, properties)
      else raise Error, "unknown operation '#{operation}'"
      end
    end
  end
end
