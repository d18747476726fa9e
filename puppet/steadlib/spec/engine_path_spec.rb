# frozen_string_literal: true

require 'fileutils'

RSpec.describe PuppetX::Stead::EnginePath do
  let(:path) { File.join(@directory, 'bin', 'stead') }

  before do
    Dir.mkdir(File.dirname(path))
    File.write(path, '')
    File.chmod(0o755, path)
  end

  def find(path)
    described_class.find('STEAD_ENGINE' => path)
  end

  it 'takes what the variable names, without symbolic links' do
    link = File.join(@directory, 'link')
    File.symlink(path, link)
    expect(find(link)).to eq(File.realpath(path))
  end

  it 'refuses a file that others may write' do
    File.chmod(0o775, path)
    expect { find(path) }.to raise_error(PuppetX::Stead::Error, /others may write '.*stead'; run `chmod go-w` on it/)
  end

  it 'refuses a directory above it that others may write' do
    File.chmod(0o777, File.dirname(path))
    expect { find(path) }.to raise_error(PuppetX::Stead::Error, /others may write '.*bin'/)
  end

  it 'refuses what belongs to another user' do
    skip 'only root can give a file to another user' unless Process.euid.zero?
    File.chown(65_534, nil, path)
    expect { find(path) }.to raise_error(PuppetX::Stead::Error, /belongs to another user/)
  end

  it 'refuses what is not a program' do
    File.chmod(0o644, path)
    expect { find(path) }.to raise_error(PuppetX::Stead::Error, /is not a program/)
    expect { find(File.dirname(path)) }.to raise_error(PuppetX::Stead::Error, /is not a program/)
  end

  it 'says when there is none' do
    expect { find(File.join(@directory, 'none')) }.to raise_error(PuppetX::Stead::Error, /cannot use the engine.*No such file/)
    allow(File).to receive(:file?).and_return(false)
    expect { described_class.find({}) }.to raise_error(PuppetX::Stead::Error, /is not installed; STEAD_ENGINE can name its path/)
  end
end
