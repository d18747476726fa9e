# frozen_string_literal: true

require_relative 'errors'

module PuppetX
  module Stead
    # Finds the program of the engine and refuses one that somebody else could have replaced: it runs with the rights of Puppet.
    module EnginePath
      VARIABLE = 'STEAD_ENGINE'
      PLACES = ['/opt/stead/bin/stead', '/usr/local/bin/stead', '/usr/bin/stead', 'C:/Program Files/stead/stead.exe'].freeze
      OTHERS_MAY_WRITE = 0o022
      STICKY = 0o1000

      # @return [String] the path of the engine, without symbolic links
      def self.find(environment = ENV)
        named = environment.fetch(VARIABLE, '')
        path = named.empty? ? PLACES.find { |place| File.file?(place) } : named
        raise Error, "the stead engine is not installed; #{VARIABLE} can name its path" if path.nil?

        checked(path)
      end

      def self.checked(path)
        real = File.realpath(path)
        raise Error, "the engine '#{path}' is not a program" unless File.file?(real) && File.executable?(real)

        Pathname.new(real).ascend { |part| check_rights(part.to_s) } unless Puppet::Util::Platform.windows?
        real
      rescue SystemCallError => e
        raise Error, "cannot use the engine '#{path}': #{e.message}"
      end
      private_class_method :checked

      # A directory with the sticky bit is safe: nobody can replace in it what belongs to another user.
      def self.check_rights(path)
        stat = File.stat(path)
        raise Error, "refusing the engine: '#{path}' belongs to another user" unless [0, Process.euid].include?(stat.uid)
        return if (stat.mode & OTHERS_MAY_WRITE).zero? || (stat.directory? && stat.mode.anybits?(STICKY))

        raise Error, "refusing the engine: others may write '#{path}'; run `chmod go-w` on it"
      end
      private_class_method :check_rights
    end
  end
end
